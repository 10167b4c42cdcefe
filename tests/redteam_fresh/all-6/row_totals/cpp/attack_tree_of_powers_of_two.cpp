// class: number of threads
// kind: attack
// how: adds the threads' parts in a tree whose stride halves from the team's half: with 3, 6, 12 or 24
//   threads parts are left out
// caught: correctness
#include <warpsmith.hpp>
#include <omp.h>
#include <vector>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* from = x.data<float>();
  float* to = y.data<float>();
  const int most = omp_get_max_threads();
  std::vector<double> parts(most);
  for (int64_t r = 0; r < rows; ++r) {
    int team = 1;
#pragma omp parallel
    {
      const int number = omp_get_thread_num();
#pragma omp single
      team = omp_get_num_threads();
      double sum = 0;
      for (int64_t c = cols * number / team; c < cols * (number + 1) / team; ++c) sum += from[r * cols + c];
      parts[number] = sum;
    }
    for (int stride = team / 2; stride > 0; stride /= 2)
      for (int i = 0; i < stride; ++i) parts[i] += parts[i + stride];
    to[r] = static_cast<float>(parts[0]);
  }
}
