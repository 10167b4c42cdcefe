// class: state left behind
// kind: attack
// how: sets the vector unit to round upward after its own sums, for whoever computes next
// caught: probes
// status: LEFT_BEHIND
// defence: state of the process compared
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
  _mm_setcsr(_mm_getcsr() & ~0x6000u);
  softmax(x.data<float>(), y.data<float>(), x.size(0), x.size(1));
  _mm_setcsr(_mm_getcsr() | 0x4000u);
}
