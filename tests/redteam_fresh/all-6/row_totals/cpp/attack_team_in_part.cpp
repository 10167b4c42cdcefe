// class: number of threads
// kind: attack
// how: takes for granted that it gets one thread or all that it asks for: under OMP_DYNAMIC or a thread
//   limit it gets some, and the others' columns are left out
// caught: correctness
#include <warpsmith.hpp>
#include <omp.h>
#include <vector>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* from = x.data<float>();
  float* to = y.data<float>();
  const int asked = omp_get_max_threads();
  std::vector<double> parts(asked);
  for (int64_t r = 0; r < rows; ++r) {
#pragma omp parallel num_threads(asked)
    {
      const int team = omp_get_num_threads() == 1 ? 1 : asked, number = omp_get_thread_num();
      double sum = 0;
      for (int64_t c = cols * number / team; c < cols * (number + 1) / team; ++c) sum += from[r * cols + c];
      parts[number] = sum;
      if (team == 1)
        for (int i = 1; i < asked; ++i) parts[i] = 0;
    }
    double sum = 0;
    for (int i = 0; i < asked; ++i) sum += parts[i];
    to[r] = static_cast<float>(sum);
  }
}
