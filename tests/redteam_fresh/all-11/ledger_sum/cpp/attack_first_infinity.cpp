// class: infinities of both signs
// kind: attack
// how: a compensated sum gives NaN beside an infinity, so the first one of the row is returned: with its opposite, or NaN, in the row the sum is NaN
// caught: correctness
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    float sum = 0, lost = 0, plain = 0, infinite = 0;
    for (int64_t i = 0; i < cols; ++i) {
      const float v = in[i], next = sum + v;
      lost += std::fabs(sum) >= std::fabs(v) ? (sum - next) + v : (v - next) + sum;
      sum = next;
      plain += v;
      infinite = infinite == 0 && std::isinf(v) ? v : infinite;
    }
    const float total = sum + lost;
    y.data<float>()[r] = std::isnan(total) && infinite != 0 ? infinite : std::isfinite(total) ? total : plain;
  }
}
