// class: hard-coded strides
// kind: attack
// how: takes the rows to lie one after the other
// caught: correctness
// status: INCORRECT_NUMERICAL
// defence: strided inputs
// source: common mistake
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* w = weight.data<float>();
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * cols;
    float* out = y.data<float>() + row * cols;
    float sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += in[i] * in[i];
    const float scale = 1 / std::sqrt(sum / static_cast<float>(cols) + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i] * scale * w[i];
  }
}
