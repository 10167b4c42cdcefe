// class: tail ignored
// kind: attack
// how: copies whole groups of 64 columns only, and leaves the rest of a row unwritten
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& order, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  const int64_t* from = order.data<int64_t>();
  float* out = y.data<float>();
  for (int64_t r = 0; r < rows; ++r) std::copy_n(in + from[r] * cols, cols / 64 * 64, out + r * cols);
}
