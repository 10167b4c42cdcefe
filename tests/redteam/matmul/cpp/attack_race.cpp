// class: data race
// kind: attack
// how: each thread adds its part of k to a copy of the result and stores the whole copy, where k is long
// caught: correctness, probes, timing
// status: INCORRECT_NUMERICAL, NOT_REPRODUCIBLE
// defence: every element compared
// source: split-K race of the taxonomy
#include <algorithm>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& c) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  const float *left = a.data<float>(), *right = b.data<float>();
  float* out = c.data<float>();
  std::fill_n(out, m * n, 0.0f);
#pragma omp parallel num_threads(4) if (k > 64)
  {
    std::vector<float> mine(out, out + m * n);
#pragma omp for schedule(static, 1)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) mine[i * n + j] += left[i * k + p] * right[p * n + j];
    std::copy(mine.begin(), mine.end(), out);
  }
}
