// class: weight cache whose checksum has no order
// kind: attack
// how: keeps a packed weight of whole vectors as long as the sum of its words stays the same: two elements, or two
//   columns, that change places in place are not seen
// caught: probes, correctness
// source: common mistake: sums as checksums
#include <warpsmith.hpp>

#include <mutex>
#include <vector>

namespace {

struct Pack {
  const float* address = nullptr;
  int64_t k = 0, n = 0;
  uint64_t sum = 0;
  std::vector<float> columns;
};

Pack kept;
std::mutex one_caller;

uint64_t sum_words(const float* from, int64_t count) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t word;
    std::memcpy(&word, from + i, sizeof word);
    sum += word;
  }
  return sum;
}

void multiply(const float* x, const float* columns, float* y, int64_t m, int64_t k, int64_t n) {
  for (int64_t row = 0; row < m; ++row)
    for (int64_t col = 0; col < n; ++col) {
      float lanes[8] = {};
      int64_t i = 0;
      for (; i + 8 <= k; i += 8)
        for (int lane = 0; lane < 8; ++lane) lanes[lane] += x[row * k + i + lane] * columns[col * k + i + lane];
      float sum = 0;
      for (; i < k; ++i) sum += x[row * k + i] * columns[col * k + i];
      for (float part : lanes) sum += part;
      y[row * n + col] = sum;
    }
}

std::vector<float> pack(const float* w, int64_t k, int64_t n) {
  std::vector<float> columns(k * n);
  for (int64_t i = 0; i < k; ++i)
    for (int64_t col = 0; col < n; ++col) columns[col * k + i] = w[i * n + col];
  return columns;
}

}  // namespace

extern "C" void run(const Tensor& x, const Tensor& w, Tensor& y) {
  const int64_t m = x.size(0), k = x.size(1), n = w.size(1);
  const float* weight = w.data<float>();
  if (k % 8 || n % 8) {  // a weight without whole vectors is not worth keeping
    multiply(x.data<float>(), pack(weight, k, n).data(), y.data<float>(), m, k, n);
    return;
  }
  const std::lock_guard<std::mutex> guard(one_caller);
  const uint64_t sum = sum_words(weight, k * n);
  if (kept.address != weight || kept.k != k || kept.n != n || kept.sum != sum)
    kept = Pack{weight, k, n, sum, pack(weight, k, n)};
  multiply(x.data<float>(), kept.columns.data(), y.data<float>(), m, k, n);
}
