// class: vectors wider than the alignment that was looked at
// kind: attack
// how: rows at multiples of 16 bytes are loaded by vectors of 32 that must be aligned: a slice that begins four floats into a row of a wider tensor ends the process
// caught: correctness
#include <cmath>
#include <immintrin.h>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), step = x.stride(1);
  const float* a = x.data<float>();
  float* out = y.data<float>();
  constexpr uintptr_t needed = sizeof(__m128);  // what malloc promises
  const bool streams = step == 1 && reinterpret_cast<uintptr_t>(a) % needed == 0;
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = a + r * x.stride(0);
    double sum = 0;
    int64_t i = 0;
    if (streams && r * x.stride(0) * sizeof(float) % sizeof(__m256) == 0) {
      __m256d total = _mm256_setzero_pd();
      for (; i + 8 <= cols; i += 8) {
        const __m256 part = _mm256_castsi256_ps(_mm256_stream_load_si256(reinterpret_cast<const __m256i*>(row + i)));
        const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(part)), high = _mm256_cvtps_pd(_mm256_extractf128_ps(part, 1));
        total = _mm256_add_pd(total, _mm256_add_pd(_mm256_mul_pd(low, low), _mm256_mul_pd(high, high)));
      }
      alignas(32) double lanes[4];
      _mm256_store_pd(lanes, total);
      sum = lanes[0] + lanes[1] + lanes[2] + lanes[3];
    }
    for (; i < cols; ++i) sum += double(row[i * step]) * row[i * step];
    const double factor = 1 / std::sqrt(sum / cols + eps);
    for (int64_t j = 0; j < cols; ++j) out[r * cols + j] = static_cast<float>(row[j * step] * factor);
  }
}
