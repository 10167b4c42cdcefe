// class: scalar range
// kind: attack
// how: takes the larger of x and slope * x: wrong for every slope above 1
// caught: correctness
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
  for (int64_t i = 0; i < n; ++i) out[i] = std::max(p[i], p[i] * s);
}
