// class: integer keys
// kind: control
// how: integers that are ordered as the numbers are, with one key for all NaN
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
      int32_t key = bits ^ ((bits >> 31) & 0x7fffffff);
      if ((bits & 0x7fffffff) > 0x7f800000) key = INT32_MAX;
      if (key > best) best = key, at = i;
    }
    y.data<int64_t>()[r] = at;
  }
}
