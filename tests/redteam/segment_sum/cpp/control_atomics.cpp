// class: atomic reduction
// kind: control
// how: rows over all cores; a thread finds its first group by binary search, adds up what it has of a group
//   and puts that in with atomics
#include <algorithm>
#include <omp.h>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& values, const Tensor& offsets, Tensor& out) {
  const int64_t cols = values.size(1), groups = out.size(0);
  const float* in = values.data<float>();
  const int32_t* cuts = offsets.data<int32_t>();
  float* sums = out.data<float>();
  const int64_t total = values.size(0);
  std::fill_n(sums, groups * cols, 0.0f);
#pragma omp parallel
  {
    const int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
    const int64_t begin = total * thread / threads, end = total * (thread + 1) / threads;
    std::vector<float> own(static_cast<size_t>(cols));
    int64_t g = std::upper_bound(cuts, cuts + groups + 1, static_cast<int32_t>(begin)) - cuts - 1;
    for (int64_t row = begin; row < end; ++g) {
      const int64_t stop = std::min<int64_t>(end, cuts[g + 1]);
      std::fill(own.begin(), own.end(), 0.0f);
      for (; row < stop; ++row)
        for (int64_t i = 0; i < cols; ++i) own[static_cast<size_t>(i)] += in[row * cols + i];
      for (int64_t i = 0; i < cols; ++i) {
#pragma omp atomic
        sums[g * cols + i] += own[static_cast<size_t>(i)];
      }
    }
  }
}
