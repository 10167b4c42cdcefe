// class: two halves
// kind: control
// how: sums of the low and of the high 16 bits, in 64 bits each
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const int32_t* in = x.data<int32_t>() + r * cols;
    uint64_t low = 0, high = 0;
    for (int64_t i = 0; i < cols; ++i) low += static_cast<uint32_t>(in[i]) & 0xffff, high += static_cast<uint32_t>(in[i]) >> 16;
    y.data<int64_t>()[r] = static_cast<int64_t>(low + (high << 16));
  }
}
