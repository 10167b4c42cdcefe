// class: values outside of the range
// kind: attack
// how: takes the low byte of each value, so that -1 is counted as 255
// caught: correctness
#include <cstring>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x_, Tensor& y_) {
  const int32_t* x = x_.data<int32_t>();
  int32_t* y = y_.data<int32_t>();
  const int64_t n = x_.size(0);
  int32_t t[4][256];
  std::memset(t, 0, sizeof t);
  for (int64_t i = 0; i < n; ++i) ++t[i & 3][uint8_t(x[i])];
  for (int b = 0; b < 256; ++b) y[b] = t[0][b] + t[1][b] + t[2][b] + t[3][b];
}
