// class: plain loops
// kind: control
// how: each element where it lies
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& y, Tensor& z) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      z.data<float>()[r * cols + c] = x.data<float>()[r * x.stride(0) + c * x.stride(1)] * y.data<float>()[r * y.stride(0) + c * y.stride(1)];
}
