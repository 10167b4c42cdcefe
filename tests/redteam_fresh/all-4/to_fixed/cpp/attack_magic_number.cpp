// class: middle magnitudes
// kind: attack
// how: rounds by adding 1.5 * 2^23, which is wrong from 2^22 to 2^23: odd numbers become even
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& q) {
  const int64_t n = x.size(0);
  const float* in = x.data<float>();
  int32_t* out = q.data<int32_t>();
  for (int64_t i = 0; i < n; ++i) {
    const float v = std::min(std::max(256 * in[i], -1073741824.0f), 1073741824.0f);
    volatile float s = v + 12582912.0f;
    out[i] = int32_t(std::fabs(v) < 8388608.0f ? s - 12582912.0f : v);
  }
}
