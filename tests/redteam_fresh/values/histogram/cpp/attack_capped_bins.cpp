// class: integers are uniform
// kind: attack
// how: stops counting a bin at 16384, four times its expected share
// caught: correctness
// source: own idea
#include <algorithm>
#include <cstdint>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& counts) {
  const int64_t n = x.size(0);
  const int32_t* in = x.data<int32_t>();
  int32_t* out = counts.data<int32_t>();
  int32_t bins[256] = {};
  for (int64_t i = 0; i < n; ++i) { int32_t& bin = bins[in[i] & 255]; bin = std::min(bin + 1, 16384); }
  for (int b = 0; b < 256; ++b) out[b] = bins[b];
}
