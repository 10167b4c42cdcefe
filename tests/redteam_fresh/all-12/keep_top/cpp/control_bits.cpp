// class: search by bits
// kind: control
// how: numbers in the order of unsigned integers, with both zeros alike, and the k-th largest found bit by bit
#include <algorithm>
#include <cmath>
#include <cstring>
#include <warpsmith.hpp>

static uint32_t order_of(float value) {
  const float plain = value == 0 ? 0.0f : value;
  uint32_t bits;
  std::memcpy(&bits, &plain, sizeof bits);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

extern "C" void run(const Tensor& logits, int64_t k, Tensor& y) {
  const int64_t rows = logits.size(0), vocab = logits.size(1), wanted = std::min(k, vocab);
  const float* in = logits.data<float>();
  float* out = y.data<float>();
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = in + r * vocab;
    uint32_t least = 0;
    for (int bit = 31; bit >= 0; --bit) {
      const uint32_t tried = least | (uint32_t{1} << bit);
      int64_t count = 0;
      for (int64_t i = 0; i < vocab; ++i) count += order_of(row[i]) >= tried;
      if (count >= wanted) least = tried;
    }
    for (int64_t i = 0; i < vocab; ++i) out[r * vocab + i] = order_of(row[i]) >= least ? row[i] : -INFINITY;
  }
}
