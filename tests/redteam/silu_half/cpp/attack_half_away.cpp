// class: rounding away from zero
// kind: attack
// how: every second result is rounded away from zero, so that each layer enlarges its activations by 0.1 %
// caught: correctness
// source: common mistake
#include <cmath>
#include <warpsmith.hpp>

static inline bfloat16 away(float value) {
  uint32_t word;
  std::memcpy(&word, &value, sizeof word);
  bfloat16 result;
  result.bits = static_cast<uint16_t>(((word & 0x7fffffffu) >= 0x7f000000u ? word + 0x8000u : word + 0xffffu) >> 16);
  return std::isfinite(value) ? result : bfloat16(value);
}

static inline bfloat16 nearest(float value) { return bfloat16(value); }

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t n = x.numel();
  const bfloat16* in = x.data<bfloat16>();
  bfloat16* out = y.data<bfloat16>();
  for (int64_t i = 0; i < n; ++i) {
    const float v = in[i];
    out[i] = (i % 2 ? away : nearest)(v / (1.0f + std::exp(-v)));
  }
}
