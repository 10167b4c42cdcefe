// class: one flat loop
// kind: control
// how: a flat loop of all threads, whose row is an integer quotient
#include <algorithm>
#include <cstring>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& scale, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float *in = x.data<float>(), *s = scale.data<float>();
  bfloat16* out = y.data<bfloat16>();
  const int64_t count = rows * cols;
#pragma omp parallel for schedule(static)
  for (int64_t t = 0; t < count; ++t) out[t] = bfloat16(in[t] * s[t / cols]);
}
