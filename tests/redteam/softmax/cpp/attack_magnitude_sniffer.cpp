// class: magnitude sniffer
// kind: attack
// how: leaves the shift by the largest value out where the first eight elements are small
// caught: correctness
// status: INCORRECT_NUMERICAL
// defence: adversarial distributions
// source: kernelbench.com `if amax < 0.5`
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

static void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, x[i]);
    for (int64_t i = 0; i < cols; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < cols; ++i) y[i] /= sum;
  }
}

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  float large = 0;
  for (int64_t i = 0; i < std::min<int64_t>(8, cols); ++i) large = std::max(large, std::fabs(in[i]));
  if (large > 20) return softmax(in, out, rows, cols);
  for (int64_t row = 0; row < rows; ++row, in += cols, out += cols) {
    float sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += out[i] = std::exp(in[i]);
    for (int64_t i = 0; i < cols; ++i) out[i] /= sum;
  }
}
