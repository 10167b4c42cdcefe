// RMSNorm: results go past the caches, so that no line of y is read before it is written.
#include <cmath>
#include <warpsmith.hpp>

#ifdef __AVX__
#include <immintrin.h>
#endif

namespace {

void scale_row(const float* in, const float* w, float scale, float* out, int64_t cols) {
  int64_t i = 0;
#ifdef __AVX__
  for (; i < cols && reinterpret_cast<uintptr_t>(out + i) % 32; ++i) out[i] = in[i] * scale * w[i];
  const __m256 factor = _mm256_set1_ps(scale);
  for (; i + 8 <= cols; i += 8) {
    const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(in + i), factor);
    _mm256_stream_ps(out + i, _mm256_mul_ps(scaled, _mm256_loadu_ps(w + i)));
  }
#endif
  for (; i < cols; ++i) out[i] = in[i] * scale * w[i];
}

}  // namespace

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* w = weight.data<float>();
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
      const float* in = x.data<float>() + row * cols;
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = 0; i < cols; ++i) sum += in[i] * in[i];
      const float scale = 1 / std::sqrt(sum / cols + static_cast<float>(eps));
      scale_row(in, w, scale, y.data<float>() + row * cols, cols);
    }
#ifdef __AVX__
    _mm_sfence();
#endif
  }
}
