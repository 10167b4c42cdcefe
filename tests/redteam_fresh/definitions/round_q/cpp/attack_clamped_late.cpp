// class: clamped after the conversion
// kind: attack
// how: converts to int32 first: what is above 2^27 wraps and becomes -128; drawn values end at a few hundred
// caught: correctness
#include <algorithm>
#include <cmath>
#include <immintrin.h>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x_, Tensor& y_) {
  const float* x = x_.data<float>();
  int8_t* y = y_.data<int8_t>();
  const int64_t n = x_.size(0) * x_.size(1);
#pragma omp parallel for
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<int8_t>(std::min(127, std::max(-128, _mm_cvtss_si32(_mm_set_ss(x[i] * 16)))));
}
