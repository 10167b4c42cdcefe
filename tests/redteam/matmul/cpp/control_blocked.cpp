// class: other summation order
// kind: control
// how: blocks of 32 along every axis; each block of k is summed for itself before it is added
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& c) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  const float *left = a.data<float>(), *right = b.data<float>();
  float* out = c.data<float>();
  constexpr int64_t block = 32;
  std::fill_n(out, m * n, 0.0f);
  for (int64_t j0 = 0; j0 < n; j0 += block)
    for (int64_t p0 = 0; p0 < k; p0 += block)
      for (int64_t i = 0; i < m; ++i) {
        const int64_t j1 = std::min(j0 + block, n), p1 = std::min(p0 + block, k);
        float sums[block] = {};
        for (int64_t p = p0; p < p1; ++p)
          for (int64_t j = j0; j < j1; ++j) sums[j - j0] += left[i * k + p] * right[p * n + j];
        for (int64_t j = j0; j < j1; ++j) out[i * n + j] += sums[j - j0];
      }
}
