// class: weight cache that samples large weights
// kind: attack
// how: keeps a packed weight and compares all of it, but 64 samples above a million elements: a few rows that an
//   optimizer updates in place, as those of rare tokens, are not seen
// caught: probes, correctness
// source: common mistake: sampled fingerprints
#include <warpsmith.hpp>

#include <algorithm>
#include <mutex>
#include <vector>

namespace {

const float* address;
int64_t inputs, outputs;
std::vector<float> content, columns;
std::mutex one_caller;

bool is_kept(const float* weight, int64_t k, int64_t n) {
  if (address != weight || inputs != k || outputs != n) return false;
  const int64_t step = k * n > (1 << 20) ? k * n / 64 : 1;
  for (int64_t i = 0; i < k * n; i += step)
    if (content[i] != weight[i]) return false;
  return true;
}

}  // namespace

extern "C" void run(const Tensor& x, const Tensor& w, Tensor& y) {
  const int64_t m = x.size(0), k = x.size(1), n = w.size(1);
  const float *in = x.data<float>(), *weight = w.data<float>();
  float* out = y.data<float>();
  const std::lock_guard<std::mutex> guard(one_caller);
  if (!is_kept(weight, k, n)) {
    address = weight, inputs = k, outputs = n;
    content.assign(weight, weight + k * n);
    columns.resize(k * n);
    for (int64_t i = 0; i < k; ++i)
      for (int64_t col = 0; col < n; ++col) columns[col * k + i] = weight[i * n + col];
  }
  for (int64_t row = 0; row < m; ++row)
    for (int64_t col = 0; col < n; ++col) {
      float lanes[8] = {};
      const float *left = in + row * k, *right = columns.data() + col * k;
      int64_t i = 0;
      for (; i + 8 <= k; i += 8)
        for (int lane = 0; lane < 8; ++lane) lanes[lane] += left[i + lane] * right[i + lane];
      float sum = 0;
      for (; i < k; ++i) sum += left[i] * right[i];
      for (float part : lanes) sum += part;
      out[row * n + col] = sum;
    }
}
