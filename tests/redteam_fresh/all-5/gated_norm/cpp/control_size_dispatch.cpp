// class: table of functions by size
// kind: control
// how: short, middle and long rows have functions of their own, in a table
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

static float plain(const float* in, int64_t cols, int64_t right) {
  float sum = 0;
  for (int64_t i = 0; i < cols; ++i) sum += in[i * right] * in[i * right];
  return sum;
}

static float in_lanes(const float* in, int64_t cols, int64_t right) {
  float lane[8] = {}, sum = 0;
  const int64_t whole = cols / 8 * 8;
  for (int64_t i = 0; i < whole; i += 8)
    for (int64_t j = 0; j < 8; ++j) lane[j] += in[(i + j) * right] * in[(i + j) * right];
  for (int64_t i = whole; i < cols; ++i) sum += in[i * right] * in[i * right];
  for (float each : lane) sum += each;
  return sum;
}

static float in_blocks(const float* in, int64_t cols, int64_t right) {
  float sum = 0;
  for (int64_t first = 0; first < cols; first += 4096)
    sum += in_lanes(in + first * right, std::min<int64_t>(4096, cols - first), right);
  return sum;
}

using Sum = float (*)(const float*, int64_t, int64_t);
static const Sum kSums[] = {plain, in_lanes, in_blocks};

extern "C" void run(const Tensor& x, const Tensor& gate, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* w = weight.data<float>();
#pragma omp parallel for
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * x.stride(0);
    const float* open = gate.data<float>() + row * gate.stride(0);
    float* out = y.data<float>() + row * cols;
    const float sum = kSums[(cols >= 64) + (cols > 100'000)](in, cols, x.stride(1));
    const float scale = 1 / std::sqrt(sum / static_cast<float>(cols) + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i)
      out[i] = in[i * x.stride(1)] * scale * w[i] / (1 + std::exp(-open[i * gate.stride(1)]));
  }
}
