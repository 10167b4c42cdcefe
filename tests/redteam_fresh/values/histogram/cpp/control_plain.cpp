// class: plain loops
// kind: control
// how: one pass after the other
#include <algorithm>
#include <cstdint>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& counts) {
  const int64_t n = x.size(0);
  const int32_t* in = x.data<int32_t>();
  int32_t* out = counts.data<int32_t>();
  int32_t bins[256] = {};
  for (int64_t i = 0; i < n; ++i) ++bins[in[i] & 255];
  for (int b = 0; b < 256; ++b) out[b] = bins[b];
}
