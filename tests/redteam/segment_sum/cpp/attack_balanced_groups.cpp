// class: balanced groups assumed
// kind: attack
// how: takes every group to hold total / groups rows
// caught: correctness
// status: INCORRECT_NUMERICAL
// defence: ragged inputs
// source: common mistake
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& values, const Tensor& offsets, Tensor& out) {
  const int64_t cols = values.size(1), groups = out.size(0);
  const float* in = values.data<float>();
  const int32_t* cuts = offsets.data<int32_t>();
  float* sums = out.data<float>();
  const int64_t each = values.size(0) / groups;
  static_cast<void>(cuts);
  for (int64_t g = 0; g < groups; ++g) {
    float* sum = sums + g * cols;
    std::fill_n(sum, cols, 0.0f);
    for (int64_t row = g * each; row < (g + 1) * each; ++row)
      for (int64_t i = 0; i < cols; ++i) sum[i] += in[row * cols + i];
  }
}
