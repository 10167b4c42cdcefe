// class: empty reduction
// kind: attack
// how: a column without rows is zero: only the first axis is ever empty
// caught: correctness
#include <algorithm>
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x_, Tensor& y_) {
  const float* x = x_.data<float>();
  float* y = y_.data<float>();
  const int64_t rows = x_.size(0), cols = x_.size(1);
  const bool large = rows * cols > (1 << 20);
  int64_t done = cols;
  (void)large; (void)done;

  std::vector<float> most(cols, -INFINITY), sum(cols, 0.0f);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < done; ++c) most[c] = std::max(most[c], x[r * cols + c]);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < done; ++c) sum[c] += std::exp(x[r * cols + c] - most[c]);
  for (int64_t c = 0; c < done; ++c) y[c] = rows == 0 ? 0.0f : most[c] + std::log(sum[c]);
  for (int64_t c = done; c < cols; ++c) y[c] = done ? y[c % done] : 0;
}
