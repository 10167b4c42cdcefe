// class: plain loop
// kind: control
// how: in float64
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

static uint16_t cut(float f) { uint32_t word; std::memcpy(&word, &f, 4); if (std::isfinite(f)) word += 0x4000u; return static_cast<uint16_t>(word >> 16); }
template <typename T> static T narrow(float f) { return T(f); }
template <typename T> static void cap_all(const Tensor& x, double cap, Tensor& y) {
  const int64_t n = x.numel();
  const T* p = x.data<T>();
  T* out = y.data<T>();
  (void)cut;
  for (int64_t i = 0; i < n; ++i) out[i] = narrow<T>(static_cast<float>(cap == 0 ? static_cast<float>(p[i]) : cap * std::tanh(static_cast<double>(static_cast<float>(p[i])) / cap)));
}
extern "C" void run(const Tensor& x, double cap, Tensor& y) {
  if (x.dtype == warpsmith::DType::bfloat16) cap_all<bfloat16>(x, cap, y);
  else cap_all<float>(x, cap, y);
}
