// class: vector exponential
// kind: control
// how: the exponential as a polynomial in vectors, over the whole range
// against: control_plain.cpp
#include <bit>
#include <cmath>
#include <warpsmith.hpp>

static inline float silu(float x) {
  const float t = std::fabs(x) > 104.0f ? -104.0f : -std::fabs(x);
  const float shifted = t * 1.44269504f + 12582912.0f, power = shifted - 12582912.0f;
  const float r = (t - power * 0.693359375f) + power * 2.12194440e-4f;
  float z = 1.0f / 5040;
  z = z * r + 1.0f / 720;
  z = z * r + 1.0f / 120;
  z = z * r + 1.0f / 24;
  z = z * r + 1.0f / 6;
  z = z * r + 0.5f;
  z = z * r + 1.0f;
  z = z * r + 1.0f;
  const int32_t whole = static_cast<int32_t>(power), half = whole >> 1;
  z *= std::bit_cast<float>((half + 127) << 23);
  z *= std::bit_cast<float>((whole - half + 127) << 23);
  return (x < 0 ? x * z : x) / (1.0f + z);
}

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t count = x.numel();
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t i = 0; i < count; ++i) out[i] = silu(in[i]);
}
