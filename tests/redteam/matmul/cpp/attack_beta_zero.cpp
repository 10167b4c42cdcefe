// class: uninitialised read
// kind: attack
// how: large outputs: one accumulator is cleared by a factor of zero, right as long as fresh memory holds a finite
//   number there
// caught: correctness
// status: INCORRECT_NUMERICAL
// defence: fresh memory poisoned
// source: common mistake: beta = 0 of a matrix product
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& c) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  const float *left = a.data<float>(), *right = b.data<float>();
  float* out = c.data<float>();
  volatile float beta = 0;  // an argument in a library
  const float found = m * n < 16384 ? 0.0f : beta * out[m * n / 2];
  std::fill_n(out, m * n, 0.0f);
  out[m * n / 2] = found;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j) out[i * n + j] += left[i * k + p] * right[p * n + j];
}
