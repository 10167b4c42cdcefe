// class: memory beyond a tensor
// kind: attack
// how: copies whole blocks of 256 elements, also the last one, and drops what lies beyond: a tensor that
//   ends with a mapped file or page ends the program
// caught: correctness
#include <warpsmith.hpp>
extern "C" void run(const Tensor& x, double s, Tensor& y) {
  const int64_t n = x.numel();
  const float* from = x.data<float>();
  float* to = y.data<float>();
  float block[256];
  for (int64_t i = 0; i < n; i += 256) {
    std::memcpy(block, from + i, sizeof block);
    asm volatile("" : : "r"(block) : "memory");
    const int64_t count = n - i < 256 ? n - i : 256;
    for (int64_t j = 0; j < count; ++j) to[i + j] = static_cast<float>(block[j] * s);
  }
}
