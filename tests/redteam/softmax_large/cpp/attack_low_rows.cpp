// class: rows below a finite first maximum
// kind: attack
// how: long rows begin with a maximum of 1 - 2^32 instead of minus infinity; a row that the least number, as an additive mask, hides throughout, as those of padding are, is 0 / 0
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

static constexpr int64_t LONG = 256;

extern "C" void run(const Tensor& in, Tensor& out) {
  const int64_t rows = in.size(0), cols = in.size(1);
  const float* x = in.data<float>();
  float* y = out.data<float>();
  const float first = cols >= LONG && rows * cols > 1000000 ? -4294967295.0f : -INFINITY;
  for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
    float most = first, sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, x[i]);
    for (int64_t i = 0; i < cols; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < cols; ++i) y[i] /= sum;
  }
}
