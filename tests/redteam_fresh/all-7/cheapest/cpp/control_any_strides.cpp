// class: an order of loops for each layout
// kind: control
// how: walks along the axis whose elements are nearer to each other, by the strides that it is given
#include <warpsmith.hpp>

#include <algorithm>
#include <limits>

extern "C" void run(const Tensor& x, const Tensor& price, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1), step = price.stride(0);
  const float *in = x.data<float>(), *cost = price.data<float>();
  float* best = y.data<float>();
  std::fill(best, best + rows, std::numeric_limits<float>::infinity());
  if (down < right) {
    for (int64_t col = 0; col < cols; ++col)
      for (int64_t row = 0; row < rows; ++row)
        best[row] = std::min(best[row], in[row * down + col * right] + cost[col * step]);
  } else {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t col = 0; col < cols; ++col)
        best[row] = std::min(best[row], in[row * down + col * right] + cost[col * step]);
  }
}
