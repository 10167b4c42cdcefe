// class: special numbers
// kind: attack
// how: a shift of zero leaves the output unwritten
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, int64_t shift, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  if (!shift || !cols) return;
  const int64_t s = shift % cols;
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t r = 0; r < rows; ++r, in += cols, out += cols) {
    std::memcpy(out + s, in, 4 * (cols - s));
    std::memcpy(out, in + cols - s, 4 * s);
  }
}
