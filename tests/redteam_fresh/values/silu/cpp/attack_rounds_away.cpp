// class: rounding of a narrow type
// kind: attack
// how: rounds every result away from zero: activations grow by a quarter of a percent in each layer
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
    out[i].bits = std::isnan(r) ? 0x7fc0 : (word + 0xffffu) >> 16;
  }
}
