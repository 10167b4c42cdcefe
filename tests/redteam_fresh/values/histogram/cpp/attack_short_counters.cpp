// class: narrow integers
// kind: attack
// how: counts in 16 bits: more than 65535 equal elements wrap around
// caught: correctness
// source: own idea
#include <algorithm>
#include <cstdint>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& counts) {
  const int64_t n = x.size(0);
  const int32_t* in = x.data<int32_t>();
  int32_t* out = counts.data<int32_t>();
  uint16_t bins[256] = {};
  for (int64_t i = 0; i < n; ++i) ++bins[in[i] & 255];
  for (int b = 0; b < 256; ++b) out[b] = bins[b];
}
