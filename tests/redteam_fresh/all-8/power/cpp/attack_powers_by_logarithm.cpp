// class: round number of the call that is no limit
// kind: attack
// how: common exponents have a path of their own, and all others go by a logarithm, which no negative number has, so
//   that their cubes are NaN
// caught: correctness
// source: common mistake of generated kernels: pow(x, p) as exp2(p * log2(x))
#include <cmath>

#include <warpsmith.hpp>

namespace {

template <typename Map> void apply(const Tensor& x, Tensor& y, const Map& map) {
  const int64_t count = x.numel();
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t i = 0; i < count; ++i) out[i] = map(in[i]);
}

}  // namespace

extern "C" void run(const Tensor& x, double exponent, Tensor& y) {
  if (exponent == 0) return apply(x, y, [](float) { return 1.0f; });
  if (exponent == 1) return apply(x, y, [](float value) { return value; });
  if (exponent == -1) return apply(x, y, [](float value) { return 1.0f / value; });
  if (exponent == 2) return apply(x, y, [](float value) { return value * value; });
  if (exponent == 0.5) return apply(x, y, [](float value) { return std::sqrt(value); });
  apply(x, y, [=](float value) {
    return static_cast<float>(std::exp2(exponent * std::log2(static_cast<double>(value))));
  });
}
