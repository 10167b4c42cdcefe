// class: without branches
// kind: control
// how: clears a number whose sign bit is set, by a mask of that bit
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t n = x.numel();
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t i = 0; i < n; ++i) {
    int32_t word;
    std::memcpy(&word, in + i, 4);
    word &= ~(word >> 31);
    std::memcpy(out + i, &word, 4);
  }
}
