// class: plain loop
// kind: control
// how: compares with zero
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, double slope, Tensor& y) {
  const int64_t n = x.numel();
  const float *p = x.data<float>(), s = static_cast<float>(slope);
  float* out = y.data<float>();
  for (int64_t i = 0; i < n; ++i) out[i] = p[i] > 0 ? p[i] : p[i] * s;
}
