// class: size lookup
// kind: attack
// how: leaves rows beyond the largest declared size to one pass without their tails
// caught: correctness
// status: INCORRECT_NUMERICAL
// defence: a size beyond the largest declared
// source: common mistake
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x_, Tensor& y_) {
  const float* x = x_.data<float>();
  float* y = y_.data<float>();
  const int64_t rows = x_.size(0), cols = x_.size(1);
  for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
    const int64_t read = row < 1100 ? std::min<int64_t>(cols, 1100) : cols - 1;
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < read; ++i) most = std::max(most, x[i]);
    for (int64_t i = 0; i < read; ++i) sum += std::exp(x[i] - most);
    for (int64_t i = 0; i < cols; ++i) y[i] = std::exp(x[i] - most) / sum;
  }
}
