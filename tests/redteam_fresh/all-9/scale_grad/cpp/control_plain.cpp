// class: plain
// kind: control
// how: element by element
#include <warpsmith.hpp>

extern "C" void run(const Tensor& grad, const Tensor& scale, Tensor& dx) {
  const int64_t rows = grad.size(0), cols = grad.size(1), down = grad.stride(0), right = grad.stride(1);
  const float* w = scale.data<float>();
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = grad.data<float>() + r * down;
    float* out = dx.data<float>() + r * cols;
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i * right] * w[i];
  }
}
