// class: a tensor expanded along two axes
// kind: control
// how: where a gradient is one number it makes one row of products with it, and copies that
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& grad, const Tensor& scale, Tensor& dx) {
  const int64_t rows = grad.size(0), cols = grad.size(1), down = grad.stride(0), right = grad.stride(1);
  const float* w = scale.data<float>();
  float* out = dx.data<float>();
  if (down == 0 && right == 0 && rows > 1 && cols > 1) {
    const float number = grad.data<float>()[0];
    for (int64_t i = 0; i < cols; ++i) out[i] = number * w[i];
    for (int64_t row = 1; row < rows; ++row) std::copy_n(out, cols, out + row * cols);
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = grad.data<float>() + row * down;
    for (int64_t i = 0; i < cols; ++i) out[row * cols + i] = in[i * right] * w[i];
  }
}
