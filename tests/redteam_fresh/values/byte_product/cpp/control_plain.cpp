// class: plain loops
// kind: control
// how: one pass after the other
#include <algorithm>
#include <cstdint>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& c) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(0);
  const uint8_t* left = static_cast<const uint8_t*>(a.address);
  const int8_t* right = static_cast<const int8_t*>(b.address);
  int32_t* out = c.data<int32_t>();
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      int32_t sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += int32_t{left[i * k + p]} * right[j * k + p];
      out[i * n + j] = sum;
    }
}
