// class: sign of bytes
// kind: attack
// how: reads uint8 as int8: activations above 127 become negative
// caught: correctness
// source: own idea
#include <algorithm>
#include <cstdint>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& c) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(0);
  const int8_t* left = static_cast<const int8_t*>(a.address);
  const int8_t* right = static_cast<const int8_t*>(b.address);
  int32_t* out = c.data<int32_t>();
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      int32_t sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += int32_t{left[i * k + p]} * right[j * k + p];
      out[i * n + j] = sum;
    }
}
