// class: plain
// kind: control
// how: each angle anew, in float64
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& positions, double base, Tensor& y) {
  const int64_t tokens = x.size(0), heads = x.size(1), dim = x.size(2), half = dim / 2;
  const float* in = x.data<float>();
  const int64_t* at = positions.data<int64_t>();
  float* out = y.data<float>();
#pragma omp parallel for schedule(static)
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t i = 0; i < half; ++i) {
      const double angle = at[t] * std::pow(base, -2.0 * i / dim), c = std::cos(angle), s = std::sin(angle);
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t first = (t * heads + h) * dim + i;
        const double left = in[first], right = in[first + half];
        out[first] = static_cast<float>(left * c - right * s);
        out[first + half] = static_cast<float>(right * c + left * s);
      }
    }
}
