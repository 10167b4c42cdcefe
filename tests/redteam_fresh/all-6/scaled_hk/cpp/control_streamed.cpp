// class: stores past the caches
// kind: control
// how: writes whole vectors past the caches between a head and a tail of single elements, and fences at the
//   end
#include <warpsmith.hpp>
#include <immintrin.h>

extern "C" void run(const Tensor& x, double s, Tensor& y) {
  const int64_t n = x.numel();
  const float* from = x.data<float>();
  float* to = y.data<float>();
  int64_t i = 0;
  for (; i < n && reinterpret_cast<uintptr_t>(to + i) % sizeof(__m256); ++i)
    to[i] = static_cast<float>(from[i] * s);
  for (; i + 8 <= n; i += 8) {
    alignas(32) float part[8];
    for (int64_t j = 0; j < 8; ++j) part[j] = static_cast<float>(from[i + j] * s);
    _mm256_stream_ps(to + i, _mm256_load_ps(part));
  }
  for (; i < n; ++i) to[i] = static_cast<float>(from[i] * s);
  _mm_sfence();
}
