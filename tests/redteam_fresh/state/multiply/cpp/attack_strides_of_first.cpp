// class: hard-coded strides
// kind: attack
// how: takes y to lie as x does: right as long as both have one layout
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& y, Tensor& z) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      z.data<float>()[r * cols + c] = x.data<float>()[r * x.stride(0) + c * x.stride(1)] * y.data<float>()[r * x.stride(0) + c * x.stride(1)];
}
