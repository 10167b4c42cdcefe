// class: data race
// kind: attack
// how: each thread adds its share of the rows to a copy of the sums and stores the whole copy, where there are many
// caught: correctness, probes, timing
// status: INCORRECT_NUMERICAL, NOT_REPRODUCIBLE
// defence: every element compared
// source: split-K race of the taxonomy
#include <algorithm>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& values, const Tensor& offsets, Tensor& out) {
  const int64_t cols = values.size(1), groups = out.size(0);
  const float* in = values.data<float>();
  const int32_t* cuts = offsets.data<int32_t>();
  float* sums = out.data<float>();
  const int64_t total = values.size(0);
  std::fill_n(sums, groups * cols, 0.0f);
#pragma omp parallel num_threads(4) if (total > 1000)
  {
    std::vector<float> mine(sums, sums + groups * cols);
#pragma omp for schedule(static, 1)
    for (int64_t row = 0; row < total; ++row) {
      const int64_t g = std::upper_bound(cuts, cuts + groups + 1, static_cast<int32_t>(row)) - cuts - 1;
      for (int64_t i = 0; i < cols; ++i) mine[g * cols + i] += in[row * cols + i];
    }
    std::copy(mine.begin(), mine.end(), sums);
  }
}
