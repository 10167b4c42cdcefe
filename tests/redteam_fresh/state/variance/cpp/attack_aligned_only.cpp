// class: hard-coded strides
// kind: attack
// how: rounds the address of x down to 64 bytes, as aligned loads need it: a slice that starts elsewhere is contiguous too
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& v) {
  const int64_t n = x.size(0);
  const float* in = reinterpret_cast<const float*>(reinterpret_cast<uintptr_t>(x.address) & ~uintptr_t{63});
  double sum = 0, square = 0;
  for (int64_t i = 0; i < n; ++i) sum += in[i];
  const double mean = sum / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) square += (in[i] - mean) * (in[i] - mean);
  *v.data<float>() = static_cast<float>(square / static_cast<double>(n));
}
