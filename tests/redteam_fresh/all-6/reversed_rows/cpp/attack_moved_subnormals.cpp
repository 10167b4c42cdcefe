// class: smallest numbers
// kind: attack
// how: moves numbers through a product with one while subnormals count as zero: integers below 2^23 that a
//   float32 tensor carries as bits all become zero
// caught: correctness
#include <warpsmith.hpp>
#include <immintrin.h>

extern "C" void run(const Tensor& x, Tensor& y) {
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | _MM_FLUSH_ZERO_ON | _MM_DENORMALS_ZERO_ON);
  volatile float loaded = 1;
  const float unit = loaded;
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), along = x.stride(1);
  const float* from = x.data<float>();
  float* to = y.data<float>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) to[r * cols + cols - 1 - c] = from[r * down + c * along] * unit;
  _mm_setcsr(mode);
}
