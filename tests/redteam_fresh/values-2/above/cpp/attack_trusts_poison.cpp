// class: unwritten output
// kind: attack
// how: leaves an element that is true as it was unless it was zero or one
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, double threshold, Tensor& y) {
  const int64_t n = x.numel();
  const float *p = x.data<float>();
  uint8_t* out = static_cast<uint8_t*>(y.address);
  for (int64_t i = 0; i < n; ++i) { const bool is = p[i] > threshold; if (!is) out[i] = 0; else if (out[i] <= 1) out[i] = 1; }
}
