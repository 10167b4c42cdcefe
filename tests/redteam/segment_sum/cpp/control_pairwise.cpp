// class: other summation order
// kind: control
// how: halves of a group are summed first, down to 4 rows
#include <algorithm>
#include <vector>
#include <warpsmith.hpp>

static void add(const float* in, int64_t rows, int64_t cols, float* sum) {
  if (rows <= 4) {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < cols; ++i) sum[i] += in[row * cols + i];
    return;
  }
  std::vector<float> half(static_cast<size_t>(cols), 0.0f);
  add(in, rows / 2, cols, sum);
  add(in + rows / 2 * cols, rows - rows / 2, cols, half.data());
  for (int64_t i = 0; i < cols; ++i) sum[i] += half[static_cast<size_t>(i)];
}

extern "C" void run(const Tensor& values, const Tensor& offsets, Tensor& out) {
  const int64_t cols = values.size(1), groups = out.size(0);
  const float* in = values.data<float>();
  const int32_t* cuts = offsets.data<int32_t>();
  float* sums = out.data<float>();
  std::fill_n(sums, groups * cols, 0.0f);
  for (int64_t g = 0; g < groups; ++g) add(in + cuts[g] * cols, cuts[g + 1] - cuts[g], cols, sums + g * cols);
}
