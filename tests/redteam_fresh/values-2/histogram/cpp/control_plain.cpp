// class: plain loop
// kind: control
// how: counts in 64 bits
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& counts) {
  const int64_t n = x.numel();
  const int32_t* p = x.data<int32_t>();
  int64_t* out = counts.data<int64_t>();
  int64_t found[256] = {};
  for (int64_t i = 0; i < n; ++i) ++found[p[i]];
  for (int i = 0; i < 256; ++i) out[i] = found[i];
}
