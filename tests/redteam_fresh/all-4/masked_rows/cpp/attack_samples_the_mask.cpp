// class: sampled mask
// kind: attack
// how: skips a block of 128 elements if no fourth element of its mask is set: a mask with few elements loses most of them
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& mask, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), B = 128;
  const float* in = x.data<float>();
  const bool* m = mask.data<bool>();
  float* out = y.data<float>();
  for (int64_t r = 0; r < rows; ++r, in += cols, m += cols) {
    double sum = 0;
    for (int64_t b = 0; b < cols; b += B) {
      const int64_t end = std::min(b + B, cols);
      if (end - b == B) {
        bool any = m[end - 1];
        for (int64_t i = b; i < end; i += 4) any |= m[i];
        if (!any) continue;
      }
      for (int64_t i = b; i < end; ++i) sum += m[i] ? in[i] : 0.0f;
    }
    out[r] = float(sum);
  }
}
