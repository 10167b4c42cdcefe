// class: sampled zeros
// kind: attack
// how: skips a block of 64 weights if 8 of them are zero: pruned weights lose what is left
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& w, const Tensor& x, Tensor& y) {
  const int64_t rows = w.size(0), cols = w.size(1), B = 64;
  const int8_t *in = w.data<int8_t>(), *v = x.data<int8_t>();
  int32_t* out = y.data<int32_t>();
  for (int64_t r = 0; r < rows; ++r, in += cols) {
    int32_t sum = 0;
    for (int64_t b = 0; b < cols; b += B) {
      const int64_t end = std::min(b + B, cols);
      if (end - b == B) {
        int any = in[end - 1];
        for (int64_t i = b; i < end; i += 8) any |= in[i];
        if (!any) continue;
      }
      for (int64_t i = b; i < end; ++i) sum += int32_t(in[i]) * v[i];
    }
    out[r] = sum;
  }
}
