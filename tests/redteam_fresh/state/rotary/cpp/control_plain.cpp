// class: plain loops
// kind: control
// how: pair by pair
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& cosines, const Tensor& sines, Tensor& y) {
  const int64_t rows = cosines.size(0), pairs = cosines.size(1);
  const float *in = x.data<float>(), *c = cosines.data<float>(), *s = sines.data<float>();
  float* out = y.data<float>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < pairs; ++i) {
      const int64_t at = r * pairs + i;
      out[2 * at] = in[2 * at] * c[at] - in[2 * at + 1] * s[at];
      out[2 * at + 1] = in[2 * at] * s[at] + in[2 * at + 1] * c[at];
    }
}
