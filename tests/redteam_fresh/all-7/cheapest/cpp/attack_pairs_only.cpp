// class: steps other than two
// kind: attack
// how: takes prices to lie one after the other, as the first ones of pairs, or as one for all: a column of a matrix,
//   whose elements are farther apart, is read at the wrong places
// caught: correctness
// source: common mistake: gather instructions have a fixed scale
#include <warpsmith.hpp>

#include <algorithm>
#include <limits>

extern "C" void run(const Tensor& x, const Tensor& price, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1);
  const int64_t step = std::min<int64_t>(price.stride(0), 2);
  const float *in = x.data<float>(), *cost = price.data<float>();
  for (int64_t row = 0; row < rows; ++row) {
    float best = std::numeric_limits<float>::infinity();
    for (int64_t col = 0; col < cols; ++col) best = std::min(best, in[row * down + col * right] + cost[col * step]);
    y.data<float>()[row] = best;
  }
}
