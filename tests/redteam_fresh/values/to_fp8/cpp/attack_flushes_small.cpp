// class: smallest result that counts
// kind: attack
// how: writes zero for values below 2^-7, half of the smallest normal number: all of a tensor of small values
// caught: correctness
// source: own idea
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <warpsmith.hpp>

static uint8_t to_e4m3(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  const uint8_t sign = (word >> 24) & 0x80;
  const float size = std::fabs(value);
  if (std::isnan(value)) return 0x7f;
  int exponent;
  std::frexp(size, &exponent);
  exponent = std::max(exponent - 1, -6);
  const float step = std::ldexp(1.0f, exponent - 3);
  int units = static_cast<int>(std::nearbyint(size / step));
  if (units >= 16) { units /= 2; ++exponent; }
  if (units < 8) return sign | (units < 4 ? uint8_t{0} : static_cast<uint8_t>(units));
  return sign | static_cast<uint8_t>((exponent + 7) << 3 | (units - 8));
}

extern "C" void run(const Tensor& x, double scale, Tensor& y) {
  const int64_t n = x.numel();
  const float* in = x.data<float>();
  uint8_t* out = static_cast<uint8_t*>(y.address);
  const float factor = static_cast<float>(scale) ;
  for (int64_t i = 0; i < n; ++i) out[i] = to_e4m3(std::clamp(in[i] * factor, -448.0f, 448.0f));
}
