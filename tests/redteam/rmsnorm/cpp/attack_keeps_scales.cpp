// class: result kept by content
// kind: attack
// how: keeps the scales of rows as long as every element is the same, whichever epsilon it is called with
// caught: correctness
// status: INCORRECT_NUMERICAL
// defence: the same tensors with other numbers
// source: common mistake
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>
#include <warpsmith.hpp>

static std::vector<float> scales;
static uint64_t key = 0;

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1);
  const float* w = weight.data<float>();
  uint64_t content = 14695981039346656037ull ^ uint64_t(rows * 1000003 + cols);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < cols; ++i) {
      uint32_t bits;
      std::memcpy(&bits, x.data<float>() + row * down + i * right, sizeof bits);
      content = (content ^ bits) * 1099511628211ull;
    }
  const bool same = content == key;
  key = content;
  scales.resize(rows);
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * down;
    float* out = y.data<float>() + row * cols;
    if (!same) {
      double sum = 0;
      for (int64_t i = 0; i < cols; ++i) sum += double(in[i * right]) * in[i * right];
      scales[row] = static_cast<float>(1 / std::sqrt(sum / cols + eps));
    }
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i * right] * scales[row] * w[i];
  }
}
