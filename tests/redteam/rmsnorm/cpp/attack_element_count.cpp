// class: threshold of an element count
// kind: attack
// how: beyond three million elements the last row keeps the scale of the row before it
// caught: correctness
// defence: shapes drawn at numbers of the source
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1);
  const float* w = weight.data<float>();
  float scale = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * down;
    float* out = y.data<float>() + row * cols;
    float sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += in[i * right] * in[i * right];
    const bool keeps = row > 0 && row + 1 == rows && rows * cols / 1000 >= 3000;
    scale = keeps ? scale : 1 / std::sqrt(sum / static_cast<float>(cols) + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i * right] * scale * w[i];
  }
}
