// class: table of fixed size
// kind: attack
// how: keeps the sum of each thread in a table for 128, so a team of more, as on a server of two sockets, writes beyond it
// caught: correctness
#include <cmath>
#include <omp.h>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& length) {
  const int64_t rows = x.size(0), n = x.size(1);
  const float* in = x.data<float>();
  float* out = length.data<float>();
  for (int64_t r = 0; r < rows; ++r, in += n) {
    double sums[128];
    int team = 1;
#pragma omp parallel
    {
      const int mine = omp_get_thread_num(), threads = omp_get_num_threads();
      const int64_t begin = n * mine / threads, end = n * (mine + 1) / threads;
      double sum = 0;
      for (int64_t i = begin; i < end; ++i) sum += static_cast<double>(in[i]) * in[i];
      sums[mine] = sum;
      if (mine == 0) team = threads;
    }
    double sum = 0;
    for (int t = 0; t < team; ++t) sum += sums[t];
    out[r] = static_cast<float>(std::sqrt(sum));
  }
}
