// class: empty calls of another type
// kind: attack
// how: divides by the number of elements where they are bfloat16: an empty batch ends the process
// caught: correctness
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
  const int64_t n = x.numel();
  if (x.dtype == warpsmith::DType::float32) return silu(x.data<float>(), y.data<float>(), n);
  volatile int64_t all = n;
  const int64_t parts = 1 + 4096 / all;
  for (int64_t p = 0; p < parts; ++p) {
    const int64_t from = n * p / parts, to = n * (p + 1) / parts;
    silu(x.data<bfloat16>() + from, y.data<bfloat16>() + from, to - from);
  }
}
