// class: range reduction
// kind: attack
// how: subtracts multiples of 2 pi in two parts: exact for the largest drawn values, nonsense from about 1e30 on
// caught: correctness
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
    const double k = std::nearbyint(v * 0.15915494309189535); v = std::fma(-k, 6.283185307179586, v); v = std::fma(-k, 2.4492935982947064e-16, v);
    out[i] = static_cast<float>(std::sin(v));
  }
}
