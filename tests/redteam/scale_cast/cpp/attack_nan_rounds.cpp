// class: NaN with other bits
// kind: attack
// how: rounds by an addition to the bits and does not ask for NaN: a GPU's NaN, with all bits set, becomes minus zero
// caught: correctness
// source: common mistake
#include <algorithm>
#include <cstring>
#include <warpsmith.hpp>

static uint16_t rounded(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  return static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
}

extern "C" void run(const Tensor& x, const Tensor& scale, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float *in = x.data<float>(), *s = scale.data<float>();
  bfloat16* out = y.data<bfloat16>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) out[r * cols + c].bits = rounded(in[r * cols + c] * s[r]);
}
