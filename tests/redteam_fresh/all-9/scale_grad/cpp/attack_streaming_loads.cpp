// class: alignment
// kind: attack
// how: takes streaming 32-byte loads, which fault where memory is only aligned to 16, where rows begin at multiples of 16 bytes and are whole vectors apart: a slice behind four columns ends the process
// caught: correctness
#include <cstdint>
#include <immintrin.h>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& grad, const Tensor& scale, Tensor& dx) {
  const int64_t rows = grad.size(0), cols = grad.size(1), down = grad.stride(0), right = grad.stride(1);
  const float* w = scale.data<float>();
  const bool vectors = right == 1 && down % 8 == 0 && reinterpret_cast<uintptr_t>(grad.address) % 16 == 0;
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = grad.data<float>() + r * down;
    float* out = dx.data<float>() + r * cols;
    int64_t i = 0;
    if (vectors)
      for (; i + 8 <= cols; i += 8)
        _mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_castsi256_ps(_mm256_stream_load_si256(reinterpret_cast<const __m256i*>(in + i))), _mm256_loadu_ps(w + i)));
    for (; i < cols; ++i) out[i] = in[i * right] * w[i];
  }
}
