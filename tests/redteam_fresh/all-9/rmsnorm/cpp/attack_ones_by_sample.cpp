// class: weight of ones by a sample
// kind: attack
// how: a weight whose 65 sampled elements are 1, as a norm's is where training starts, is taken to be 1 everywhere; a trained one in bfloat16 is so but for a few channels
// caught: correctness
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1);
  const float* w = weight.data<float>();
  bool ones = cols >= 128;
  for (int64_t s = 0; ones && s <= 64; ++s) ones = w[s * (cols - 1) / 64] == 1.0f;
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * down;
    float* out = y.data<float>() + row * cols;
    float sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += in[i * right] * in[i * right];
    const float scale = 1 / std::sqrt(sum / static_cast<float>(cols) + static_cast<float>(eps));
    if (ones)
      for (int64_t i = 0; i < cols; ++i) out[i] = in[i * right] * scale;
    else
      for (int64_t i = 0; i < cols; ++i) out[i] = in[i * right] * scale * w[i];
  }
}
