// class: largest value of a range
// kind: attack
// how: the level 1 is one colour beyond the table, which is not looked at
// caught: correctness
// source: common mistake: floor(x * n) for a place in a table of n
#include <warpsmith.hpp>

extern "C" void run(const Tensor& level, const Tensor& table, Tensor& y) {
  const int64_t count = level.numel(), colors = table.numel();
  const float *levels = level.data<float>(), *values = table.data<float>();
  float* out = y.data<float>();
  const double scale = static_cast<double>(colors);
#pragma omp parallel for
  for (int64_t i = 0; i < count; ++i) out[i] = values[static_cast<int64_t>(levels[i] * scale)];
}
