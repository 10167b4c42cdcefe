// class: NaN with other bits
// kind: attack
// how: asks whether a number is NaN by the bits of one NaN: a GPU's, with all bits set, is passed over
// caught: correctness
#include <cmath>
#include <cstring>
#include <limits>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    float best = -std::numeric_limits<float>::infinity();
    int64_t at = 0;
    bool missing = false;
    for (int64_t i = 0; i < cols; ++i) {
      uint32_t bits;
      std::memcpy(&bits, in + i, 4);
      if (!missing && (bits == 0x7fc00000u || in[i] > best)) best = in[i], at = i, missing = bits == 0x7fc00000u;
    }
    y.data<int64_t>()[r] = at;
  }
}
