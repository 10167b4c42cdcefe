// class: columns that are farther apart than they are long
// kind: attack
// how: follows columns that lie one after the other in memory, and takes two columns to be as far apart as
//   they are long: wrong for some of the rows of a matrix that is stored by columns
// caught: correctness
// source: common mistake: the leading dimension of BLAS
#include <warpsmith.hpp>

#include <algorithm>
#include <limits>

extern "C" void run(const Tensor& x, const Tensor& price, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1);
  const float *in = x.data<float>(), *cost = price.data<float>();
  float* best = y.data<float>();
  std::fill(best, best + rows, std::numeric_limits<float>::infinity());
  const bool by_columns = down == 1 && right >= rows;
  if (by_columns) {
    for (int64_t col = 0; col < cols; ++col) {
      const float extra = cost[col * price.stride(0)];
      for (int64_t row = 0; row < rows; ++row) best[row] = std::min(best[row], in[col * rows + row] + extra);
    }
  } else {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t col = 0; col < cols; ++col)
        best[row] = std::min(best[row], in[row * down + col * right] + cost[col * price.stride(0)]);
  }
}
