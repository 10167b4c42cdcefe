// class: a single value expanded along two axes
// kind: attack
// how: computes one row where all rows are one in memory, and takes its elements to lie one after the other: a
//   number that is expanded to a matrix, or every second element of a row, is read beyond its end
// caught: correctness
// source: common mistake
#include <warpsmith.hpp>

#include <algorithm>
#include <limits>

static float cheapest(const float* in, int64_t right, const float* cost, int64_t step, int64_t cols) {
  float best = std::numeric_limits<float>::infinity();
  for (int64_t col = 0; col < cols; ++col) best = std::min(best, in[col * right] + cost[col * step]);
  return best;
}

extern "C" void run(const Tensor& x, const Tensor& price, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), step = price.stride(0);
  const float *in = x.data<float>(), *cost = price.data<float>();
  float* out = y.data<float>();
  if (x.stride(0) == 0) {
    std::fill(out, out + rows, cheapest(in, 1, cost, step, cols));
    return;
  }
  for (int64_t row = 0; row < rows; ++row)
    out[row] = cheapest(in + row * x.stride(0), x.stride(1), cost, step, cols);
}
