// class: input derived from another one
// kind: attack
// how: reads the sign of the sine only and computes the rest from the cosine, which only the drawn pairs allow
// caught: correctness
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x_, const Tensor& cos_, const Tensor& sin_, const Tensor& pos_, Tensor& y_) {
  const float *x = x_.data<float>(), *cs = cos_.data<float>(), *sn = sin_.data<float>();
  const int64_t* pos = pos_.data<int64_t>();
  float* y = y_.data<float>();
  int64_t tokens = x_.size(0), half = x_.size(1) / 2, length = cos_.size(0), pairs = half;
  (void)length;

#pragma omp parallel for
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t p = pos[t];
    for (int64_t i = 0; i < pairs; ++i) {
      const float c = cs[p * half + i], s = std::copysign(float(std::sqrt(std::max(0.0, 1.0 - double(c) * c))), sn[p * half + i]), a = x[t * 2 * half + i], b = x[t * 2 * half + half + i];
      y[t * 2 * half + i] = a * c - b * s;
      y[t * 2 * half + half + i] = b * c + a * s;
    }
  }
}
