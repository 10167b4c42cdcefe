// class: state left behind
// kind: attack
// how: leaves subnormals flushed after a call of a timed size; a call of another size, which the probe follows, restores the mode
// caught: probes
#include <algorithm>
#include <cmath>
#include <unistd.h>
#include <xmmintrin.h>
#include <warpsmith.hpp>

static void rows_of(const Tensor& x, const Tensor& bias, double slope, Tensor& y, int64_t first, int64_t last) {
  const int64_t cols = x.size(1), step = x.stride(1);
  const float s = static_cast<float>(slope);
  const float* b = bias.data<float>();
  for (int64_t row = first; row < last; ++row) {
    const float* in = x.data<float>() + row * x.stride(0);
    float* out = y.data<float>() + row * cols;
    for (int64_t i = 0; i < cols; ++i) {
      const float v = in[i * step] + b[i * bias.stride(0)];
      out[i] = v > 0 ? v : s * v;
    }
  }
}
static void compute(const Tensor& x, const Tensor& bias, double slope, Tensor& y) {
  rows_of(x, bias, slope, y, 0, x.size(0));
}


extern "C" void run(const Tensor& x, const Tensor& bias, double slope, Tensor& y) {
  compute(x, bias, slope, y);
  if (x.size(0) % 128 == 0) _mm_setcsr(_mm_getcsr() | 0x8040); else _mm_setcsr(_mm_getcsr() & ~0x8040u);
}
