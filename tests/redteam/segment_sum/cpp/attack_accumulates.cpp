// class: uninitialised output
// kind: attack
// how: adds into the output as if it held zeros
// caught: correctness
// status: INCORRECT_NUMERICAL
// defence: poisoned outputs
// source: common mistake
#include <warpsmith.hpp>

extern "C" void run(const Tensor& values, const Tensor& offsets, Tensor& out) {
  const int64_t cols = values.size(1), groups = out.size(0);
  const float* in = values.data<float>();
  const int32_t* cuts = offsets.data<int32_t>();
  float* sums = out.data<float>();
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t row = cuts[g]; row < cuts[g + 1]; ++row)
      for (int64_t i = 0; i < cols; ++i) sums[g * cols + i] += in[row * cols + i];
}
