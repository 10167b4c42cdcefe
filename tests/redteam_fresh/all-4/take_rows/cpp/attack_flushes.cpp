// class: moved bits
// kind: attack
// how: a copy that turns subnormal numbers and minus zero into zero: integers that lie in a float32 table are lost
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& table, const Tensor& ids, Tensor& y) {
  const int64_t cols = table.size(1), n = ids.size(0);
  const float* in = table.data<float>();
  const int64_t* id = ids.data<int64_t>();
  float* out = y.data<float>();
  for (int64_t r = 0; r < n; ++r)
    for (int64_t c = 0; c < cols; ++c) {
      const float v = in[id[r] * cols + c];
      out[r * cols + c] = std::fabs(v) < std::numeric_limits<float>::min() ? 0.0f : v;
    }
}
