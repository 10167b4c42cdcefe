// class: aligned vectors
// kind: control
// how: rows that begin at multiples of 32 bytes, whole vectors apart, are read by streaming loads of 32 bytes; others one by one
#include <immintrin.h>
#include <cstdint>
#include <warpsmith.hpp>

__attribute__((target("avx2"))) static int64_t scale_vectors(const float* in, const float* w, float* out, int64_t cols) {
  int64_t i = 0;
  for (; i + 8 <= cols; i += 8) {
    const __m256i bits = _mm256_stream_load_si256(reinterpret_cast<const __m256i*>(in + i));
    _mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_castsi256_ps(bits), _mm256_loadu_ps(w + i)));
  }
  return i;
}

extern "C" void run(const Tensor& grad, const Tensor& scale, Tensor& dx) {
  const int64_t rows = grad.size(0), cols = grad.size(1), down = grad.stride(0), right = grad.stride(1);
  const float* w = scale.data<float>();
  constexpr uintptr_t needed = sizeof(__m256i);
  const bool vectors = right == 1 && down % 8 == 0 && reinterpret_cast<uintptr_t>(grad.address) % needed == 0;
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = grad.data<float>() + row * down;
    float* out = dx.data<float>() + row * cols;
    for (int64_t i = vectors ? scale_vectors(in, w, out, cols) : 0; i < cols; ++i) out[i] = in[i * right] * w[i];
  }
}
