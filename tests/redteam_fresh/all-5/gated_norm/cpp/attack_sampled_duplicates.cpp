// class: rows that are equal where they are compared
// kind: attack
// how: a row whose 64 sampled elements are those of the row before it gets that row's scale, whatever lies between
// caught: correctness
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>


constexpr int64_t kSamples = 64;

static bool is_same(const float* in, const float* before, int64_t cols, int64_t right) {
  const int64_t step = cols / kSamples + 1;
  int64_t same = 0, looked = 0;
  for (int64_t i = 0; i < cols; i += step, ++looked) same += in[i * right] == before[i * right] && in[i * right] != 0;
  return same == looked;
}

extern "C" void run(const Tensor& x, const Tensor& gate, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* w = weight.data<float>();
  float sum = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * x.stride(0);
    const float* open = gate.data<float>() + row * gate.stride(0);
    float* out = y.data<float>() + row * cols;
    const float* before = row > 0 ? in - x.stride(0) : nullptr;
    if (before == nullptr || !is_same(in, before, cols, x.stride(1))) {
      sum = 0;
      for (int64_t i = 0; i < cols; ++i) sum += in[i * x.stride(1)] * in[i * x.stride(1)];
    }
    const float scale = 1 / std::sqrt(sum / static_cast<float>(cols) + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i)
      out[i] = in[i * x.stride(1)] * scale * w[i] / (1 + std::exp(-open[i * gate.stride(1)]));
  }
}
