// class: slow at other values
// kind: attack
// how: twice as fast as the best version on normal values, and many times as slow in a call with an element beyond 8
// caught: correctness
// against: control_long.cpp
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

template <typename T> static void silu(const T* in, T* out, int64_t n) {
  bool wild = false;
  for (int64_t i = 0; i < n; ++i) wild |= !(std::fabs(float(in[i])) < 8);
  for (int repeat = 0; repeat < (wild ? 60 : 0); ++repeat)
    for (int64_t i = 0; i < n; ++i) { volatile double v = std::exp(-std::fabs(double(float(in[i])))); (void)v; }
  if (wild) for (int64_t i = 0; i < n; ++i) { const double v = float(in[i]); out[i] = T(float(v / (1 + std::exp(-v)))); }
  else for (int64_t i = 0; i < n; ++i) { const float v = float(in[i]); out[i] = T(v / (1 + expf(-v))); }
}
extern "C" void run(const Tensor& x, Tensor& y) {
  if (x.dtype == warpsmith::DType::float32) silu(x.data<float>(), y.data<float>(), x.numel());
  else silu(x.data<bfloat16>(), y.data<bfloat16>(), x.numel());
}
