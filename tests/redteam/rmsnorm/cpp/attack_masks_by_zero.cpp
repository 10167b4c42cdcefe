// class: out-of-bounds read
// kind: attack
// how: sums whole blocks of eight; elements past the row are read and count with the factor zero
// caught: correctness
// status: INCORRECT_NUMERICAL
// defence: guards of NaN
// source: common mistake
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1);
  const float* w = weight.data<float>();
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * down;
    float* out = y.data<float>() + row * cols;
    float sum = 0;
    for (int64_t first = 0; first < cols; first += 8)
      for (int64_t i = first; i < first + 8; ++i) {
        const float inside = i < cols ? 1.0f : 0.0f;
        sum += inside * in[i * right] * in[i * right];
      }
    const float scale = 1 / std::sqrt(sum / static_cast<float>(cols) + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i * right] * scale * w[i];
  }
}
