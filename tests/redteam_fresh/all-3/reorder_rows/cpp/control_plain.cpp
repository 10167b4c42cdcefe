// class: plain loops
// kind: control
// how: copies row after row
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
  for (int64_t r = 0; r < rows; ++r) std::copy_n(in + from[r] * cols, cols, out + r * cols);
}
