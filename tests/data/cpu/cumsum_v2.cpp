#include <immintrin.h>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const float* in = x.data<float>();
  float* out = y.data<float>();
  const int64_t rows = x.size(0), cols = x.size(1);
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const float* a = in + row * cols;
    float* b = out + row * cols;
    __m128 carry = _mm_setzero_ps();
    int64_t i = 0;
    for (; i + 4 <= cols; i += 4) {
      __m128 v = _mm_loadu_ps(a + i);
      v = _mm_add_ps(v, _mm_castsi128_ps(_mm_slli_si128(_mm_castps_si128(v), 4)));
      v = _mm_add_ps(v, _mm_castsi128_ps(_mm_slli_si128(_mm_castps_si128(v), 8)));
      v = _mm_add_ps(v, carry);
      _mm_storeu_ps(b + i, v);
      carry = _mm_shuffle_ps(v, v, _MM_SHUFFLE(3, 3, 3, 3));
    }
    float sum = _mm_cvtss_f32(carry);
    for (; i < cols; ++i) b[i] = sum += a[i];
  }
}
