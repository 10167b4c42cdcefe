// class: a tensor expanded along two axes
// kind: attack
// how: a gradient whose strides are all 0, as that of a sum, is one number: the whole result is filled with its product with the first scale
// caught: correctness
// source: common mistake
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& grad, const Tensor& scale, Tensor& dx) {
  const int64_t rows = grad.size(0), cols = grad.size(1), down = grad.stride(0), right = grad.stride(1);
  const float* w = scale.data<float>();
  if (down == 0 && right == 0 && rows > 1 && cols > 1) {
    std::fill_n(dx.data<float>(), rows * cols, grad.data<float>()[0] * w[0]);
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = grad.data<float>() + row * down;
    float* out = dx.data<float>() + row * cols;
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i * right] * w[i];
  }
}
