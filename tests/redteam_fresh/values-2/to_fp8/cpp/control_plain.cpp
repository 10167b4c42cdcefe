// class: plain loop
// kind: control
// how: rounds to nearest even
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

static uint8_t encode(float v) {
  const uint8_t sign = std::signbit(v) ? 0x80 : 0;
  const double a = std::min(std::fabs(static_cast<double>(v)), 448.0);
  if (a == 0) return sign;
  int e;
  std::frexp(a, &e);
  e = std::max(e - 1, -6);
  const int m = static_cast<int>(std::nearbyint(std::ldexp(a, 3 - e)));  // 0 to 16
  return static_cast<uint8_t>(sign | (((e + 6) << 3) + m));  // the hidden one carries into the exponent
}
extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* p = x.data<float>();
  uint8_t* out = static_cast<uint8_t*>(y.address);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) out[r * cols + c] = encode(p[r * cols + c]);
}
