#include <algorithm>
#include <bit>
#include <cmath>
#include <warpsmith.hpp>

// e^x for x <= 0: 2^n by the exponent's bits, 2^f for -0.5 <= f <= 0.5 by a polynomial. No call, so loops of it vectorise.
inline float fast_exp(float x) {
  const float t = std::max(x * 1.44269504f, -126.0f), n = std::nearbyint(t), f = t - n;
  const float p = 1 + f * (0.6931472f + f * (0.2402265f + f * (0.0555041f + f * (0.0096181f + f * 0.0013333f))));
  return p * std::bit_cast<float>((int32_t(n) + 127) << 23);
}

template <typename T> void softmax(const Tensor& x, float scale, Tensor& y) {
  const T* in = x.data<T>();
  T* out = y.data<T>();
  const int64_t rows = x.size(0), cols = x.size(1);
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const T* a = in + row * cols;
    float top = -INFINITY, sum = 0;
#pragma omp simd reduction(max : top)
    for (int64_t i = 0; i < cols; ++i) top = std::max(top, float(a[i]) * scale);
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < cols; ++i) sum += fast_exp(float(a[i]) * scale - top);
#pragma omp simd
    for (int64_t i = 0; i < cols; ++i) out[row * cols + i] = T(fast_exp(float(a[i]) * scale - top) / sum);
  }
}

extern "C" void run(const Tensor& x, double scale, Tensor& y) {
  x.dtype == warpsmith::DType::bfloat16 ? softmax<bfloat16>(x, scale, y) : softmax<float>(x, scale, y);
}
