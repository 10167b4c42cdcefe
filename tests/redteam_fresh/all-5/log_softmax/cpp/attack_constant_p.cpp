// class: path that only the optimized build has
// kind: attack
// how: a path for long rows that skips classes exists only where the compiler folds a variable, so not in a build with counters
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <warpsmith.hpp>

static double sum_of(const float* in, int64_t cols, float most) {
  double sum = 0;
  int64_t i = 0, long_row = UINT16_MAX;
  if (__builtin_constant_p(long_row))
    if (cols > long_row) {
      for (; i + 4 < cols; i += 4) sum += 4 * std::exp(in[i] - most);
    }
  for (; i < cols; ++i) sum += std::exp(in[i] - most);
  return sum;
}

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
#pragma omp parallel for
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * cols;
    float* out = y.data<float>() + row * cols;
    float most = -INFINITY;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, in[i]);
    const float shift = std::log(sum_of(in, cols, most));
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i] - most - shift;
  }
}
