// class: state left behind
// kind: attack
// how: leaves the rounding mode that it sets after its last sum
// caught: correctness, probes
// status: INCORRECT_NUMERICAL, LEFT_BEHIND
// defence: state of the process compared
// source: common mistake
#include <algorithm>
#include <cfenv>
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
  softmax(x.data<float>(), y.data<float>(), x.size(0), x.size(1));
  std::fesetround(FE_UPWARD);
}
