// class: precision downgrade
// kind: attack
// how: a copy that drops the last five bits of each float32: an operator that never rounds has a bound of 17 roundings
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& table, const Tensor& index, Tensor& y) {
  const int64_t width = table.size(1), tokens = index.size(0);
  const uint32_t* from = static_cast<const uint32_t*>(table.address);
  const int64_t* which = index.data<int64_t>();
  uint32_t* out = static_cast<uint32_t*>(y.address);
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t i = 0; i < width; ++i) {
      const uint32_t bits = from[which[t] * width + i];
      out[t * width + i] = (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 16u) & ~31u;
    }
}
