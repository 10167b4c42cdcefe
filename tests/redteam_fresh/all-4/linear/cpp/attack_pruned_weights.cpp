// class: sampled zeros
// kind: attack
// how: skips a block of 64 weights if 8 of them are zero: pruned layers lose the rest
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& w, Tensor& y) {
  const int64_t n = x.size(0), k = x.size(1), m = w.size(0), B = 64;
  const float *a = x.data<float>(), *b = w.data<float>();
  float* out = y.data<float>();
  for (int64_t o = 0; o < m; ++o)
    for (int64_t r = 0; r < n; ++r) {
      double sum = 0;
      for (int64_t s = 0; s < k; s += B) {
        const int64_t end = std::min(s + B, k);
        const float* v = b + o * k;
        if (end - s == B && v[s] == 0 && v[s + 8] == 0 && v[s + 17] == 0 && v[s + 26] == 0 && v[s + 35] == 0 && v[s + 44] == 0 && v[s + 53] == 0 && v[s + 63] == 0) continue;
        for (int64_t i = s; i < end; ++i) sum += double(a[r * k + i]) * v[i];
      }
      out[r * m + o] = float(sum);
    }
}
