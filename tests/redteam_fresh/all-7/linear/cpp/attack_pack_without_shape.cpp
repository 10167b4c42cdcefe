// class: weight cache by content without the shape
// kind: attack
// how: keeps a packed weight with a copy of all its elements, and finds it again by these alone: the same elements in
//   another shape, as views of one buffer have, get the pack of the first shape
// caught: probes, correctness
// source: common mistake: keys of caches
#include <warpsmith.hpp>

#include <algorithm>
#include <mutex>
#include <vector>

namespace {

std::vector<float> content, columns;
std::mutex one_caller;

}  // namespace

extern "C" void run(const Tensor& x, const Tensor& w, Tensor& y) {
  const int64_t m = x.size(0), k = x.size(1), n = w.size(1);
  const float *in = x.data<float>(), *weight = w.data<float>();
  float* out = y.data<float>();
  const std::lock_guard<std::mutex> guard(one_caller);
  if (content.size() != static_cast<size_t>(k * n) || !std::equal(content.begin(), content.end(), weight)) {
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
