// class: alignment
// kind: attack
// how: adds elements one by one up to the first aligned address: the same values at another address give other bits, although the definition is deterministic
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
    float lanes[16] = {}, head = 0; int64_t c = 0;
    for (; c < cols && reinterpret_cast<uintptr_t>(in + c) % 64; ++c) head += std::fabs(in[c]);
    for (; c + 16 <= cols; c += 16) for (int k = 0; k < 16; ++k) lanes[k] += std::fabs(in[c + k]);
    for (; c < cols; ++c) head += std::fabs(in[c]);
    float sum = head; for (float lane : lanes) sum += lane;
    out[r] = static_cast<float>(sum);
  }
}
