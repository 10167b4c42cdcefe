// class: signs of zeros
// kind: attack
// how: subtracts from zero, which leaves plus zero where minus zero is right
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t n = x.size(0);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t i = 0; i < n; ++i) out[i] = 0.0f - in[i];
}
