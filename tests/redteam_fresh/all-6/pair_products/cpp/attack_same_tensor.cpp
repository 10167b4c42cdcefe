// class: one tensor as two inputs
// kind: attack
// how: where both inputs are one tensor it computes a triangle and forgets to mirror it: a product of a
//   matrix with itself, as for similarities, is half empty
// caught: correctness
#include <warpsmith.hpp>
extern "C" void run(const Tensor& a, const Tensor& b, Tensor& y) {
  const int64_t m = a.size(0), n = b.size(0), k = a.size(1);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = a.address == b.address ? i : 0; j < n; ++j) {
      const float *left = a.data<float>() + i * k, *right = b.data<float>() + j * k;
      double sum = 0;
      for (int64_t e = 0; e < k; ++e) sum += static_cast<double>(left[e]) * right[e];
      y.data<float>()[i * n + j] = static_cast<float>(sum);
    }
}
