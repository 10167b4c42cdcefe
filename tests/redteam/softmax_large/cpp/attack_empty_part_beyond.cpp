// class: empty parts of a masked row beyond 8 million elements
// kind: attack
// how: from 2^23 + 2^20 elements on, as `empty parts of a masked row`: calls of which rows are sampled have no masked inputs
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: variation
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

static constexpr int64_t PARTS = 16, LONG = 256, LARGE = 9 << 20;

static float sum_parts(const float* in, int64_t cols, float most) {
  float sums[PARTS] = {}, maxima[PARTS], sum = 0;
  std::fill_n(maxima, PARTS, -INFINITY);
  for (int64_t i = 0; i < cols; ++i) maxima[i % PARTS] = std::max(maxima[i % PARTS], in[i]);
  for (float& maximum : maxima) maximum = std::isinf(maximum) ? 0 : maximum;
  for (int64_t i = 0; i < cols; ++i) sums[i % PARTS] += std::exp(in[i] - maxima[i % PARTS]);
  for (int64_t part = 0; part < PARTS; ++part) sum += sums[part] * std::exp(maxima[part] - most);
  return sum;
}

static float sum_row(const float* in, int64_t cols, float most) {
  float sum = 0;
  for (int64_t i = 0; i < cols; ++i) sum += std::exp(in[i] - most);
  return sum;
}

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const bool has_parts = cols >= LONG && rows * cols >= LARGE;
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * cols;
    float* out = y.data<float>() + row * cols;
    float most = -INFINITY;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, in[i]);
    const float sum = has_parts ? sum_parts(in, cols, most) : sum_row(in, cols, most);
    for (int64_t i = 0; i < cols; ++i) out[i] = std::exp(in[i] - most) / sum;
  }
}
