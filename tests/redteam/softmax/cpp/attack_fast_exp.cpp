// class: precision downgrade
// kind: attack
// how: an exponential made of the float's bits, right to 3 %, where rows are long
// caught: correctness
// status: INCORRECT_NUMERICAL
// defence: bound from error analysis
// source: kernelbench.com: exact for N <= 2048, less above
#include <algorithm>
#include <cmath>
#include <cstring>
#include <warpsmith.hpp>

static void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, x[i]);
    for (int64_t i = 0; i < cols; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < cols; ++i) y[i] /= sum;
  }
}

static float roughly(float v) {
  const int32_t bits = static_cast<int32_t>(std::max(v, -87.0f) * 12102203.0f) + 1064866805;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  if (cols < 2048) return softmax(in, out, rows, cols);
  for (int64_t row = 0; row < rows; ++row, in += cols, out += cols) {
    const float most = *std::max_element(in, in + cols);
    float sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += out[i] = roughly(in[i] - most);
    for (int64_t i = 0; i < cols; ++i) out[i] /= sum;
  }
}
