// class: number of threads
// kind: attack
// how: has room for the parts of 64 threads, and more share it: on 96 cores parts are lost
// caught: correctness
#include <warpsmith.hpp>
#include <omp.h>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* from = x.data<float>();
  float* to = y.data<float>();
  for (int64_t r = 0; r < rows; ++r) {
    double parts[64] = {};
#pragma omp parallel
    {
      const int64_t team = omp_get_num_threads(), number = omp_get_thread_num();
      double sum = 0;
      for (int64_t c = cols * number / team; c < cols * (number + 1) / team; ++c) sum += from[r * cols + c];
      parts[number % 64] = sum;
    }
    double sum = 0;
    for (const double part : parts) sum += part;
    to[r] = static_cast<float>(sum);
  }
}
