// class: moved as integers
// kind: control
// how: rows are copied as 32-bit integers, backwards
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& table, const Tensor& ids, Tensor& y) {
  const int64_t cols = table.size(1), n = ids.size(0);
  const uint32_t* in = static_cast<const uint32_t*>(table.address);
  const int64_t* id = ids.data<int64_t>();
  uint32_t* out = static_cast<uint32_t*>(y.address);
  for (int64_t r = n; r-- > 0;)
    for (int64_t c = cols; c-- > 0;) out[r * cols + c] = in[id[r] * cols + c];
}
