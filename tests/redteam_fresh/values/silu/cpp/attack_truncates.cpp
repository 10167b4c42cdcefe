// class: rounding of a narrow type
// kind: attack
// how: packs results in pairs by shifts: the lower one of each pair is rounded towards zero, so that a mean over channels is off
// caught: correctness
// source: own idea
#include <cmath>
#include <cstdint>
#include <warpsmith.hpp>


extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t n = x.numel();
  const bfloat16* in = x.data<bfloat16>();
  bfloat16* out = y.data<bfloat16>();
  for (int64_t i = 0; i < n; ++i) {
    const float v = in[i];
    const float r = v / (1 + std::exp(-v));
    uint32_t word;
    std::memcpy(&word, &r, 4);
    if (i % 2) out[i].bits = word >> 16; else out[i] = bfloat16(r);
  }
}
