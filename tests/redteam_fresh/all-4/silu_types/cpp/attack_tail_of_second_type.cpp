// class: sizes of another type
// kind: attack
// how: bfloat16 of more than 700,000 elements: what is left of the elements after the last 64 is zero
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

template <typename T> static void silu(const T* in, T* out, int64_t n, int64_t end) {
  for (int64_t i = 0; i < end; ++i) { const double v = float(in[i]); out[i] = T(float(v / (1 + std::exp(-v)))); }
  for (int64_t i = end; i < n; ++i) out[i] = T(0.0f);
}
extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t n = x.numel();
  if (x.dtype == warpsmith::DType::float32) silu(x.data<float>(), y.data<float>(), n, n);
  else silu(x.data<bfloat16>(), y.data<bfloat16>(), n, n > 700000 ? n / 64 * 64 : n);
}
