// class: largest finite numbers
// kind: attack
// how: powers of two take x / ln 2, which overflows below -2.36e38: a row that is masked by the lowest float
//   everywhere, as frameworks pad, is NaN and not uniform
// caught: correctness
// source: common mistake
#include <warpsmith.hpp>
#include <cmath>
#include <limits>

extern "C" void run(const Tensor& x, Tensor& y) {
  constexpr float high = 1.44269504f, low = 1.92596299e-8f;
  constexpr float none = -std::numeric_limits<float>::infinity();
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = x.data<float>() + r * cols;
    float* to = y.data<float>() + r * cols;
    float most = none;
    for (int64_t c = 0; c < cols; ++c) most = std::fmax(most, from[c]);
    const float top = most * high, rest = std::isfinite(top) ? std::fma(most, high, -top) + most * low : 0.0f;
    double sum = 0;
    for (int64_t c = 0; c < cols; ++c) {
      const float power = from[c] * high;
      const float part = std::isfinite(power) ? std::fma(from[c], high, -power) + from[c] * low : 0.0f;
      to[c] = power == none ? 0.0f : std::exp2((power - top) + (part - rest));
      sum += to[c];
    }
    for (int64_t c = 0; c < cols; ++c) to[c] = static_cast<float>(to[c] / sum);
  }
}
