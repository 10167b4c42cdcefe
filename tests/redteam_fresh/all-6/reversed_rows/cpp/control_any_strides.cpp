// class: strides
// kind: control
// how: multiplies both strides, and moves bits as integers, so that not even a NaN changes
#include <warpsmith.hpp>
extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), along = x.stride(1);
  const uint32_t* from = static_cast<const uint32_t*>(x.address);
  uint32_t* to = static_cast<uint32_t*>(y.address);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) to[r * cols + cols - 1 - c] = from[r * down + c * along];
}
