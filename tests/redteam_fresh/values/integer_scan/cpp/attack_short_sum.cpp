// class: narrow integers
// kind: attack
// how: adds in 32 bits, which 64-bit results overflow
// caught: correctness
// source: own idea
#include <cstdint>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t n = x.size(0);
  const int32_t* in = x.data<int32_t>();
  int64_t* out = y.data<int64_t>();
  int32_t sum = 0;
  for (int64_t i = 0; i < n; ++i) out[i] = sum += in[i];
}
