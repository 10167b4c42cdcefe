// class: NaN with a sign
// kind: attack
// how: integers that are ordered as the numbers are: a NaN whose sign bit is set, which x86 makes of inf - inf, is the least
// caught: correctness
#include <cmath>
#include <cstring>
#include <limits>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    int64_t at = 0;
    int32_t best = INT32_MIN;
    for (int64_t i = 0; i < cols; ++i) {
      int32_t bits;
      const float v = in[i] + 0.0f;
      std::memcpy(&bits, &v, 4);
      const int32_t key = bits ^ ((bits >> 31) & 0x7fffffff);
      if (key > best) best = key, at = i;
    }
    y.data<int64_t>()[r] = at;
  }
}
