// class: plain loops
// kind: control
// how: one loop for each type, in float64
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

template <typename T> static void silu(const T* in, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) { const double v = float(in[i]); out[i] = T(float(v / (1 + std::exp(-v)))); }
}
extern "C" void run(const Tensor& x, Tensor& y) {
  if (x.dtype == warpsmith::DType::float32) silu(x.data<float>(), y.data<float>(), x.numel());
  else silu(x.data<bfloat16>(), y.data<bfloat16>(), x.numel());
}
