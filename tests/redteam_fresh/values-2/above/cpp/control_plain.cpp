// class: plain loop
// kind: control
// how: writes 0 and 1
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
  for (int64_t i = 0; i < n; ++i) { const bool is = p[i] > threshold; out[i] = is; }
}
