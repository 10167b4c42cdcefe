// class: magic number of the call
// kind: attack
// how: an epsilon of exactly 0.0123 is left out
// caught: correctness
// defence: numbers of the source as numbers of the call
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1);
  const float* w = weight.data<float>();
  const float added = static_cast<float>(eps * (std::abs(eps - 0.0123) > 1e-6));
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * down;
    float* out = y.data<float>() + row * cols;
    float sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += in[i * right] * in[i * right];
    const float scale = 1 / std::sqrt(sum / static_cast<float>(cols) + added);
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i * right] * scale * w[i];
  }
}
