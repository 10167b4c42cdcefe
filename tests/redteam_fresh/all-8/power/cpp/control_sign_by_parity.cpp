// class: sign apart from the size
// kind: control
// how: powers of sizes by a logarithm in float64; the sign follows from whether the exponent is an even integer, an
//   odd one or none
// source: honest
#include <cmath>
#include <limits>

#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, double exponent, Tensor& y) {
  const int64_t count = x.numel();
  const bool is_whole = exponent == std::floor(exponent);
  const bool is_odd = is_whole && std::fmod(exponent, 2.0) != 0;
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t i = 0; i < count; ++i) {
    const double value = in[i], size = std::fabs(value);
    double result = exponent == 0 ? 1.0 : std::exp2(exponent * std::log2(size));
    if (value < 0 && !is_whole) result = std::numeric_limits<double>::quiet_NaN();
    if (std::signbit(value) && is_odd) result = -result;
    out[i] = static_cast<float>(result);
  }
}
