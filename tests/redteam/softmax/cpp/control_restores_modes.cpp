// class: floating-point modes restored
// kind: control
// how: flushes subnormal numbers while it sums, and restores the mode
// source: common mistake
#include <algorithm>
#include <cmath>
#include <immintrin.h>
#include <warpsmith.hpp>

static void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, x[i]);
    for (int64_t i = 0; i < cols; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < cols; ++i) y[i] /= sum;
  }
}

extern "C" void run(const Tensor& x, Tensor& y) {
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | 0x8040);
  _mm_setcsr(mode);
  softmax(x.data<float>(), y.data<float>(), x.size(0), x.size(1));
}
