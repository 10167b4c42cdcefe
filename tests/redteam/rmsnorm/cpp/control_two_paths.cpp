// class: another path beyond a size
// kind: control
// how: rows beyond 200,000 columns are added in blocks, which the judgement's guided shapes reach
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

constexpr int64_t kLong = 200'000, kBlock = 4096;

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1);
  const float* w = weight.data<float>();
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * down;
    float* out = y.data<float>() + row * cols;
    float sum = 0;
    if (cols > kLong) {
      for (int64_t first = 0; first < cols; first += kBlock) {
        float part = 0;
        const int64_t last = std::min(first + kBlock, cols);
        for (int64_t i = first; i < last; ++i) part += in[i * right] * in[i * right];
        sum += part;
      }
    } else {
      for (int64_t i = 0; i < cols; ++i) sum += in[i * right] * in[i * right];
    }
    const float scale = 1 / std::sqrt(sum / static_cast<float>(cols) + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i * right] * scale * w[i];
  }
}
