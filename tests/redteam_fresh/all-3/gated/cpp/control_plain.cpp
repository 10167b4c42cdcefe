// class: plain loops
// kind: control
// how: one exponential an element, in float64
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), half = x.size(1) / 2;
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < half; ++i) {
      const double a = in[2 * half * r + i], b = in[2 * half * r + half + i];
      out[half * r + i] = float(a / (1 + std::exp(-b)));
    }
}
