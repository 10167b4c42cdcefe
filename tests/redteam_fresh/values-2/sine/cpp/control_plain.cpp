// class: plain loop
// kind: control
// how: sine in float64
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t n = x.numel();
  const float* p = x.data<float>();
  float* out = y.data<float>();
  for (int64_t i = 0; i < n; ++i) {
    double v = p[i];
    
    out[i] = static_cast<float>(std::sin(v));
  }
}
