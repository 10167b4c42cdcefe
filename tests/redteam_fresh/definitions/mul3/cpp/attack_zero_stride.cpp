// class: stride zero
// kind: attack
// how: takes an axis of stride zero, as of an expanded tensor, to be contiguous
// caught: correctness
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a_, const Tensor& b_, Tensor& y_) {
  const float *a = a_.data<float>(), *b = b_.data<float>();
  float* y = y_.data<float>();
  const int64_t n0 = a_.size(0), n1 = a_.size(1), n2 = a_.size(2);
  int64_t s[3] = {a_.stride(0), a_.stride(1), a_.stride(2)}, t[3] = {b_.stride(0), b_.stride(1), b_.stride(2)};
  const int64_t dense[3] = {n1 * n2, n2, 1};
  for (int i = 0; i < 3; ++i) { if (!s[i]) s[i] = dense[i]; if (!t[i]) t[i] = dense[i]; }
#pragma omp parallel for
  for (int64_t i = 0; i < n0; ++i)
    for (int64_t j = 0; j < n1; ++j)
      for (int64_t k = 0; k < n2; ++k)
        y[(i * n1 + j) * n2 + k] = a[i * s[0] + j * s[1] + k * s[2]] * b[i * t[0] + j * t[1] + k * t[2]];
}
