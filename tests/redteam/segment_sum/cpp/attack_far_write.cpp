// class: out-of-bounds write
// kind: attack
// how: keeps a flag 2000 bytes after the output: far past what is next to it
// caught: correctness
// status: OUT_OF_BOUNDS
// defence: guard bands
// source: common mistake
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& values, const Tensor& offsets, Tensor& out) {
  const int64_t cols = values.size(1), groups = out.size(0);
  const float* in = values.data<float>();
  const int32_t* cuts = offsets.data<int32_t>();
  float* sums = out.data<float>();
  for (int64_t g = 0; g < groups; ++g) {
    float* sum = sums + g * cols;
    std::fill_n(sum, cols, 0.0f);
    for (int64_t row = cuts[g]; row < cuts[g + 1]; ++row)
      for (int64_t i = 0; i < cols; ++i) sum[i] += in[row * cols + i];
  }
  sums[groups * cols + 500] = 1;
}
