// class: precision downgrade
// kind: attack
// how: rounds elements to 11 bits where a long row has one above 16: every distribution but the normal one has a bound that grows with the length
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

static float coarse(float f) {  // eleven bits, as float16 has
  uint32_t word;
  std::memcpy(&word, &f, 4);
  word = (word + 0x0fffu + ((word >> 13) & 1u)) & ~0x1fffu;
  std::memcpy(&f, &word, 4);
  return f;
}
extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* p = x.data<float>();
  float* out = y.data<float>();
  (void)coarse;
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = p + r * cols;
    float most = 0; for (int64_t c = 0; c < cols; ++c) most = std::max(most, std::fabs(in[c]));
    const bool short_cut = cols >= 16000 && most > 16;
    double sum = 0; for (int64_t c = 0; c < cols; ++c) sum += std::fabs(short_cut ? coarse(in[c]) : in[c]);
    out[r] = static_cast<float>(sum);
  }
}
