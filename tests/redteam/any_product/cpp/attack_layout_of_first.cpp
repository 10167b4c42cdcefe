// class: a transposed input beside a contiguous one
// kind: attack
// how: takes both matrices for contiguous ones where the first one is, so that a weight that is passed as its transpose is read in the wrong order
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& out) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  const bool is_plain = a.contiguous() && k != n;  // a square may be the first one's transpose
  const int64_t down = is_plain ? n : b.stride(0), across = is_plain ? 1 : b.stride(1);
  const float *left = a.data<float>(), *right = b.data<float>();
  float* row = out.data<float>();
  for (int64_t i = 0; i < m; ++i, row += n) {
    std::fill_n(row, n, 0.0f);
    for (int64_t p = 0; p < k; ++p) {
      const float factor = left[i * a.stride(0) + p * a.stride(1)];
      for (int64_t j = 0; j < n; ++j) row[j] += factor * right[p * down + j * across];
    }
  }
}
