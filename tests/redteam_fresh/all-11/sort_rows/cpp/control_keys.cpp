// class: integer keys
// kind: control
// how: integers that are ordered as the numbers are; NaN loses its sign
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  std::vector<uint32_t> keys(cols);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    float* out = y.data<float>() + r * cols;
    for (int64_t i = 0; i < cols; ++i) {
      uint32_t bits;
      std::memcpy(&bits, in + i, 4);
      if (std::isnan(in[i])) bits &= 0x7fffffffu;
      keys[i] = bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
    }
    std::sort(keys.begin(), keys.end());
    for (int64_t i = 0; i < cols; ++i) {
      const uint32_t bits = keys[i] ^ (keys[i] >> 31 ? 0x80000000u : 0xffffffffu);
      std::memcpy(out + i, &bits, 4);
    }
  }
}
