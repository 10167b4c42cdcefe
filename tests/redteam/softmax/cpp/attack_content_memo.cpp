// class: content memo
// kind: attack
// how: keeps the last inputs and result; the same content again, at any address, is answered by a copy
// caught: probes, conditions
// status: CACHED_RESULT, RUNTIME_ERROR, INCORRECT_NUMERICAL
// defence: repeated identical inputs
// source: gpu-mode#167
#include <algorithm>
#include <cmath>
#include <cstring>
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

static std::vector<float> asked, told;

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const size_t bytes = static_cast<size_t>(rows * cols) * sizeof(float);
  if (asked.size() * sizeof(float) == bytes && std::memcmp(asked.data(), x.address, bytes) == 0) {
    std::memcpy(y.address, told.data(), bytes);
    return;
  }
  softmax(x.data<float>(), y.data<float>(), rows, cols);
  asked.assign(x.data<float>(), x.data<float>() + rows * cols);
  told.assign(y.data<float>(), y.data<float>() + rows * cols);
}
