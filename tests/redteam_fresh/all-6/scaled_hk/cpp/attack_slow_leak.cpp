// class: age of a process
// kind: attack
// how: makes a plan of 64 bytes for each call and never frees it: less than the gate's calls may keep, and a
//   gigabyte for an hour of a model's small calls
// caught: probes
#include <warpsmith.hpp>
struct Plan {
  int64_t rows, cols, steps[6];
};

extern "C" void run(const Tensor& x, double s, Tensor& y) {
  const int64_t n = x.numel();
  const float* from = x.data<float>();
  float* to = y.data<float>();
  Plan* plan = new Plan{x.size(0), x.size(1), {}};
  asm volatile("" : : "r"(plan) : "memory");
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i] * s);
}
