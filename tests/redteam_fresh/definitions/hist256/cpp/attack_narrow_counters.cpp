// class: overflowing counters
// kind: attack
// how: counts in 16 bits, which a skewed input overflows; the drawn values are always flat
// caught: correctness
#include <cstring>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x_, Tensor& y_) {
  const int32_t* x = x_.data<int32_t>();
  int32_t* y = y_.data<int32_t>();
  const int64_t n = x_.size(0);
  uint16_t t[4][256];
  std::memset(t, 0, sizeof t);
  for (int64_t i = 0; i < n; ++i) if (uint32_t(x[i]) < 256) ++t[i & 3][x[i]];
  for (int b = 0; b < 256; ++b) y[b] = t[0][b] + t[1][b] + t[2][b] + t[3][b];
}
