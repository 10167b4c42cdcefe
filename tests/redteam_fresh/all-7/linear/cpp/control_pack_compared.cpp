// class: weight cache that compares everything
// kind: control
// how: keeps one packed weight with its shape and a copy of all its elements, and packs again where a word differs
#include <warpsmith.hpp>

#include <cstring>
#include <mutex>
#include <vector>

namespace {

struct Pack {
  int64_t k = -1, n = -1;
  std::vector<float> content, columns;

  bool holds(const float* w, int64_t inputs, int64_t outputs) const {
    return k == inputs && n == outputs && std::memcmp(content.data(), w, sizeof(float) * k * n) == 0;
  }
  void fill(const float* w, int64_t inputs, int64_t outputs) {
    k = inputs, n = outputs;
    content.assign(w, w + k * n);
    columns.resize(k * n);
    for (int64_t i = 0; i < k; ++i)
      for (int64_t col = 0; col < n; ++col) columns[col * k + i] = w[i * n + col];
  }
};

Pack kept;
std::mutex one_caller;

}  // namespace

extern "C" void run(const Tensor& x, const Tensor& w, Tensor& y) {
  const int64_t m = x.size(0), k = x.size(1), n = w.size(1);
  const std::lock_guard<std::mutex> guard(one_caller);
  if (!kept.holds(w.data<float>(), k, n)) kept.fill(w.data<float>(), k, n);
  for (int64_t row = 0; row < m; ++row)
    for (int64_t col = 0; col < n; ++col) {
      const float *left = x.data<float>() + row * k, *right = kept.columns.data() + col * k;
      float lanes[8] = {};
      int64_t i = 0;
      for (; i + 8 <= k; i += 8)
        for (int lane = 0; lane < 8; ++lane) lanes[lane] += left[i + lane] * right[i + lane];
      float sum = 0;
      for (; i < k; ++i) sum += left[i] * right[i];
      for (float part : lanes) sum += part;
      y.data<float>()[row * n + col] = sum;
    }
}
