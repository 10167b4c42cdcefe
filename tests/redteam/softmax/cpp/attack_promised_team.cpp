// class: team smaller than promised
// kind: attack
// how: rows are shared among omp_get_max_threads() threads; a caller's own parallel region gives it one of them
// caught: correctness
// source: common mistake
#include <algorithm>
#include <cmath>
#include <omp.h>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), team = omp_get_max_threads();
#pragma omp parallel
  {
    const int64_t thread = omp_get_thread_num();
    for (int64_t row = thread * rows / team; row < (thread + 1) * rows / team; ++row) {
      const float* in = x.data<float>() + row * cols;
      float* out = y.data<float>() + row * cols;
      float most = -INFINITY;
      double sum = 0;
      for (int64_t i = 0; i < cols; ++i) most = std::isnan(in[i]) ? in[i] : std::max(most, in[i]);
      for (int64_t i = 0; i < cols; ++i) sum += std::exp(in[i] - most);
      for (int64_t i = 0; i < cols; ++i) out[i] = static_cast<float>(std::exp(in[i] - most) / sum);
    }
  }
}
