// class: state of the C library
// kind: attack
// how: tells the allocator never to give memory back: the whole program keeps its largest use for good
// caught: probes
#include <warpsmith.hpp>
#include <malloc.h>

extern "C" void run(const Tensor& x, double s, Tensor& y) {
  const int64_t n = x.numel();
  const float* from = x.data<float>();
  float* to = y.data<float>();
  mallopt(M_TRIM_THRESHOLD, 0x7fffffff);
  mallopt(M_MMAP_MAX, 0);
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i] * s);
}
