// class: aligned vectors
// kind: control
// how: loads whole vectors at multiples of 32 bytes where rows are multiples of them, since contiguous tensors begin
//   at multiples of 64
#include <immintrin.h>
#include <cmath>
#include <warpsmith.hpp>

__attribute__((target("avx"))) static double add_vectors(const float* left, const float* right, int64_t cols) {
  __m256d low = _mm256_setzero_pd(), high = _mm256_setzero_pd();
  for (int64_t i = 0; i < cols; i += 8) {
    const __m256 a = _mm256_load_ps(left + i), b = _mm256_load_ps(right + i);
    const __m256d first = _mm256_sub_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(a)),
                                        _mm256_cvtps_pd(_mm256_castps256_ps128(b)));
    const __m256d second = _mm256_sub_pd(_mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)),
                                         _mm256_cvtps_pd(_mm256_extractf128_ps(b, 1)));
    low = _mm256_add_pd(low, _mm256_mul_pd(first, first));
    high = _mm256_add_pd(high, _mm256_mul_pd(second, second));
  }
  alignas(32) double parts[4];
  _mm256_store_pd(parts, _mm256_add_pd(low, high));
  return parts[0] + parts[1] + parts[2] + parts[3];
}

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& y) {
  const int64_t rows = a.size(0), cols = a.size(1);
  for (int64_t row = 0; row < rows; ++row) {
    const float *left = a.data<float>() + row * cols, *right = b.data<float>() + row * cols;
    double sum = 0;
    if (cols % 8 == 0)
      sum = add_vectors(left, right, cols);
    else
      for (int64_t i = 0; i < cols; ++i) {
        const double difference = static_cast<double>(left[i]) - right[i];
        sum += difference * difference;
      }
    y.data<float>()[row] = static_cast<float>(std::sqrt(sum));
  }
}
