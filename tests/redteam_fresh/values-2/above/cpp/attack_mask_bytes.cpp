// class: wrong type
// kind: attack
// how: stores true as 255, as a vector comparison does: no bool of PyTorch or C++ holds that
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
  for (int64_t i = 0; i < n; ++i) { const bool is = p[i] > threshold; out[i] = is ? 255 : 0; }
}
