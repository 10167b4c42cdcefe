// class: plain loops
// kind: control
// how: row by row
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& table, const Tensor& ids, Tensor& y) {
  const int64_t n = ids.size(0), d = table.size(1);
  const float* from = table.data<float>();
  
  for (int64_t i = 0; i < n; ++i) std::copy_n(from + (ids.data<int64_t>()[i] ) * d, d, y.data<float>() + i * d);
}
