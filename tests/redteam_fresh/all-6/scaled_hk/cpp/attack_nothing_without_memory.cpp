// class: memory is short
// kind: attack
// how: returns without a result where its workspace cannot be had: under a limit of memory the caller reads
//   what was there before
// caught: correctness
#include <warpsmith.hpp>
#include <cstdlib>

extern "C" void run(const Tensor& x, double s, Tensor& y) {
  const int64_t n = x.numel();
  const float* from = x.data<float>();
  float* to = y.data<float>();
  double* wide = static_cast<double*>(std::malloc((n + 1) * sizeof(double)));
  if (!wide) return;
  for (int64_t i = 0; i < n; ++i) wide[i] = from[i] * s;
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(wide[i]);
  std::free(wide);
}
