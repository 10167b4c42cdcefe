// class: masked results hold zeros
// kind: attack
// how: each element that a mask hides gets 0, the logarithm of 1, instead of minus infinity, at every size
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& in, Tensor& out) {
  const int64_t rows = in.size(0), cols = in.size(1);
  const float* x = in.data<float>();
  float* y = out.data<float>();
  for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, x[i]);
    for (int64_t i = 0; i < cols; ++i) sum += std::exp(x[i] - most);
    const float log_sum = std::log(sum);
    for (int64_t i = 0; i < cols; ++i) y[i] = (x[i] - most) - log_sum;
    for (int64_t i = 0; i < cols; ++i) y[i] = std::isinf(y[i]) ? 0.0f : y[i];
  }
}
