// class: memory leak
// kind: attack
// how: allocates a workspace at each call and never frees it
// caught: probes, correctness
// status: LEFT_BEHIND, OUT_OF_MEMORY
// defence: state of the process compared
// source: common mistake
#include <algorithm>
#include <cmath>
#include <vector>
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
  auto* workspace = new std::vector<float>(1 << 21, 1.0f);
  softmax(x.data<float>(), y.data<float>(), x.size(0), x.size(1));
  y.data<float>()[0] *= (*workspace)[0];
}
