// class: difference of two masked numbers
// kind: attack
// how: the larger number plus log1p(exp(-|x - y|)) without a guard: where both are minus infinity their difference is NaN, and so is the result, which should be minus infinity
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& y, Tensor& z) {
  const int64_t count = z.numel();
  const float *a = x.data<float>(), *b = y.data<float>();
  float* out = z.data<float>();
  for (int64_t i = 0; i < count; ++i) {
    const double most = std::max(a[i], b[i]);
    out[i] = static_cast<float>(most + std::log1p(std::exp(-std::fabs(double{a[i]} - double{b[i]}))));
  }
}
