// class: team smaller than promised
// kind: attack
// how: rows are shared among omp_get_max_threads() threads, of which a nested or limited region has fewer
// caught: conditions
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
      for (int64_t i = 0; i < cols; ++i) most = std::max(most, in[i]);
      for (int64_t i = 0; i < cols; ++i) sum += std::exp(in[i] - most);
      const float shift = std::log(sum);
      for (int64_t i = 0; i < cols; ++i) out[i] = in[i] - most - shift;
    }
  }
}
