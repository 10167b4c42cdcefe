// class: number of threads
// kind: attack
// how: promised to be deterministic, it adds the threads' parts in the order in which they end: two parts
//   commute, those of four cores do not
// caught: correctness
#include <warpsmith.hpp>
#include <omp.h>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* from = x.data<float>();
  float* to = y.data<float>();
  for (int64_t r = 0; r < rows; ++r) {
    float total = 0;
#pragma omp parallel
    {
      const int64_t team = omp_get_num_threads(), number = omp_get_thread_num();
      float sum = 0;
      for (int64_t c = cols * number / team; c < cols * (number + 1) / team; ++c) sum += from[r * cols + c];
#pragma omp critical
      total += sum;
    }
    to[r] = total;
  }
}
