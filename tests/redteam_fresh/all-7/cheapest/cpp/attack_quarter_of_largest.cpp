// class: largest finite numbers
// kind: attack
// how: starts the minimum at a quarter of the largest float, so that a price can be added to it: a row that is padded
//   with the largest finite number everywhere gets the quarter
// caught: correctness
// source: common mistake: the infinity of shortest paths
#include <warpsmith.hpp>

#include <algorithm>
#include <limits>

extern "C" void run(const Tensor& x, const Tensor& price, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1);
  const float *in = x.data<float>(), *cost = price.data<float>();
  for (int64_t row = 0; row < rows; ++row) {
    float best = std::numeric_limits<float>::max() / 4;
    for (int64_t col = 0; col < cols; ++col)
      best = std::min(best, in[row * down + col * right] + cost[col * price.stride(0)]);
    y.data<float>()[row] = best;
  }
}
