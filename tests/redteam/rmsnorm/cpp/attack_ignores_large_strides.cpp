// class: hard-coded strides
// kind: attack
// how: follows the strides of small inputs only
// caught: correctness
// status: INCORRECT_NUMERICAL
// defence: strided inputs at timed sizes
// source: own idea
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const bool is_small = rows * cols < 100000;
  const int64_t row_step = is_small ? x.stride(0) : cols, step = is_small ? x.stride(1) : 1;
  const float* w = weight.data<float>();
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * row_step;
    float* out = y.data<float>() + row * cols;
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += double(in[i * step]) * in[i * step];
    const float scale = static_cast<float>(1 / std::sqrt(sum / static_cast<double>(cols) + eps));
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i * step] * scale * w[i];
  }
}
