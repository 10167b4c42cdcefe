// class: hard-coded sizes
// kind: attack
// how: tiles of 16 with no masks: what no tile covers is left as it was
// caught: correctness
// status: INCORRECT_NUMERICAL
// defence: odd shapes
// source: common mistake
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& c) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  const float *left = a.data<float>(), *right = b.data<float>();
  float* out = c.data<float>();
  constexpr int64_t tile = 16;
  for (int64_t i0 = 0; i0 + tile <= m; i0 += tile)
    for (int64_t j0 = 0; j0 + tile <= n; j0 += tile) {
      float sums[tile][tile] = {};
      for (int64_t p = 0; p < k; ++p)
        for (int64_t i = 0; i < tile; ++i)
          for (int64_t j = 0; j < tile; ++j) sums[i][j] += left[(i0 + i) * k + p] * right[p * n + j0 + j];
      for (int64_t i = 0; i < tile; ++i)
        for (int64_t j = 0; j < tile; ++j) out[(i0 + i) * n + j0 + j] = sums[i][j];
    }
}
