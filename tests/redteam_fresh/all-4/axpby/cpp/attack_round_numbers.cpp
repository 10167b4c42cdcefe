// class: special numbers
// kind: attack
// how: shortcuts for alpha 1 and 0, which forget beta; and for beta 1 and 0, which forget alpha
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(double alpha, const Tensor& x, double beta, const Tensor& z, Tensor& y) {
  const int64_t n = x.size(0);
  const float *a = x.data<float>(), *b = z.data<float>();
  float* out = y.data<float>();
  if (alpha == 1) for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
  else if (alpha == 0) for (int64_t i = 0; i < n; ++i) out[i] = b[i];
  else if (beta == 0 || beta == 1) for (int64_t i = 0; i < n; ++i) out[i] = a[i] + float(beta) * b[i];
  else for (int64_t i = 0; i < n; ++i) out[i] = float(alpha * a[i] + beta * b[i]);
}
