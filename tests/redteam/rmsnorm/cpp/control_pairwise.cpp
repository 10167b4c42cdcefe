// class: other summation order
// kind: control
// how: halves are summed first, down to 8 elements
#include <cmath>
#include <warpsmith.hpp>

static float squares(const float* in, int64_t count, int64_t right) {
  if (count > 8) return squares(in, count / 2, right) + squares(in + count / 2 * right, count - count / 2, right);
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += in[i * right] * in[i * right];
  return sum;
}

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1);
  const float* w = weight.data<float>();
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * down;
    float* out = y.data<float>() + row * cols;
    const float sum = squares(in, cols, right);
    const float scale = 1 / std::sqrt(sum / static_cast<float>(cols) + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i * right] * scale * w[i];
  }
}
