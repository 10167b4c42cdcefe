// class: empty parts of a masked row
// kind: attack
// how: from a million elements on, sixteen partial sums of a long row are each weighed with exp(own maximum - maximum); a part that is masked throughout counts as one with the maximum 0, so beside values below -88 its weight is infinite and the row is NaN
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: a version of this project's own softmax, which two judgements and a rerun had passed
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

static constexpr int64_t PARTS = 16, LONG = 256, LARGE = 1 << 20;

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
