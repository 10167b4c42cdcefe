// class: plain
// kind: control
// how: a bag after the other
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& table, const Tensor& ids, const Tensor& offsets, Tensor& y) {
  const int64_t cols = table.size(1), total = ids.size(0), bags = offsets.size(0);
  const float* w = table.data<float>();
  const int64_t *id = ids.data<int64_t>(), *begin = offsets.data<int64_t>();
  float* out = y.data<float>();
  for (int64_t b = 0; b < bags; ++b) {
    float* to = out + b * cols;
    std::fill_n(to, cols, 0.0f);
    const int64_t end = b + 1 < bags ? begin[b + 1] : total;
    for (int64_t i = begin[b]; i < end; ++i)
      for (int64_t j = 0; j < cols; ++j) to[j] += w[id[i] * cols + j];
  }
}
