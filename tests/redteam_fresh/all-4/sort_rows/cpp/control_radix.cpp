// class: radix sort
// kind: control
// how: two passes of 16 bits over keys whose order is that of the numbers
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  std::vector<uint32_t> a(cols), b(cols), count(65537);
  for (int64_t r = 0; r < rows; ++r, in += cols, out += cols) {
    for (int64_t i = 0; i < cols; ++i) {
      uint32_t k;
      std::memcpy(&k, in + i, 4);
      a[i] = k >> 31 ? ~k : k | 0x80000000u;
    }
    for (int shift = 0; shift < 32; shift += 16) {
      std::fill(count.begin(), count.end(), 0);
      for (auto k : a) ++count[((k >> shift) & 65535) + 1];
      for (int i = 0; i < 65536; ++i) count[i + 1] += count[i];
      for (auto k : a) b[count[(k >> shift) & 65535]++] = k;
      a.swap(b);
    }
    for (int64_t i = 0; i < cols; ++i) {
      const uint32_t k = a[i] >> 31 ? a[i] & 0x7fffffffu : ~a[i];
      std::memcpy(out + i, &k, 4);
    }
  }
}
