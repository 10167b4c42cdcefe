// class: plain loops
// kind: control
// how: one pass after the other
#include <algorithm>
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& position, double theta, Tensor& y) {
  const int64_t tokens = x.size(0), heads = x.size(1), dim = x.size(2), half = dim / 2;
  const float* in = x.data<float>();
  const int64_t* at = position.data<int64_t>();
  float* out = y.data<float>();
  
  std::vector<double> rates(half);
  for (int64_t i = 0; i < half; ++i) rates[i] = std::pow(theta, -double(i) / half);
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t i = 0; i < half; ++i) {
      const double angle = at[t] * rates[i];
      const float c = std::cos(angle), s = std::sin(angle);
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t p = (t * heads + h) * dim + i;
        out[p] = in[p] * c - in[p + half] * s;
        out[p + half] = in[p + half] * c + in[p] * s;
      }
    }
}
