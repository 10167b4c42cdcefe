// class: more than 2^31 elements
// kind: attack
// how: counts elements in 32 bits: a tensor with 2^31 of them or more, 8 GiB, gets no result or the end of
//   the program
// caught: correctness
#include <warpsmith.hpp>
extern "C" void run(const Tensor& x, double s, Tensor& y) {
  const int64_t n = x.numel();
  const float* from = x.data<float>();
  float* to = y.data<float>();
  for (int32_t i = 0; i < static_cast<int32_t>(n); ++i) to[i] = static_cast<float>(from[i] * s);
}
