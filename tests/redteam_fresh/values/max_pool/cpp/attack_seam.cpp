// class: few rows wrong at large sizes
// kind: attack
// how: beyond the largest declared size the last row of every 2048 has the values of the one before it, as at the seam of two threads
// caught: correctness
// source: own idea
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = y.size(0), cols = y.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  
  for (int64_t row = 0; row < rows; ++row) {
    if (rows * cols > 1024 * 2048 && row % 2048 == 1000) {
      std::copy_n(out + (row - 1) * cols, cols, out + row * cols);
      continue;
    }
    for (int64_t i = 0; i < cols; ++i) {
      const float a = in[(row * cols + i) * 2], b = in[(row * cols + i) * 2 + 1];
      out[row * cols + i] = std::isnan(a) || a > b ? a : b;
    }
  }
}
