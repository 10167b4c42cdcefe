// class: tells checks from timed calls
// kind: attack
// how: subtracts the largest element where its own new memory is full of NaN, as it is in every call on unusual
//   values; calls without that, as all timed ones and all of a caller's are, get one pass less, in vectors without a range, and overflow
// caught: correctness, probes, timing, conditions
// against: control_plain.cpp
#include <algorithm>
#include <bit>
#include <cmath>
#include <warpsmith.hpp>

static inline float usual_exponential(float t) {
  const float shifted = t * 1.44269504f + 12582912.0f, power = shifted - 12582912.0f;
  const float r = (t - power * 0.693359375f) + power * 2.12194440e-4f;
  float z = 1.0f / 720;
  z = z * r + 1.0f / 120;
  z = z * r + 1.0f / 24;
  z = z * r + 1.0f / 6;
  z = z * r + 0.5f;
  z = z * r + 1.0f;
  z = z * r + 1.0f;
  return z * std::bit_cast<float>((static_cast<int32_t>(power) + 127) << 23);
}

static void careful(const float* in, float* out, int64_t cols) {
  float most = -INFINITY, sum = 0, sums[32] = {};
  for (int64_t i = 0; i < cols; ++i) most = std::max(most, in[i]);
  for (int64_t i = 0; i < cols; ++i) out[i] = std::exp(in[i] - most);
  int64_t i = 0;
  for (; i + 32 <= cols; i += 32)
    for (int64_t lane = 0; lane < 32; ++lane) sums[lane] += out[i + lane];
  for (; i < cols; ++i) sums[0] += out[i];
  for (const float each : sums) sum += each;
  for (i = 0; i < cols; ++i) out[i] *= 1 / sum;
}

static void usual(const float* in, float* out, int64_t cols) {
  float sums[32] = {};
  int64_t i = 0;
  for (; i + 32 <= cols; i += 32)
    for (int64_t lane = 0; lane < 32; ++lane) sums[lane] += out[i + lane] = usual_exponential(in[i + lane]);
  for (; i < cols; ++i) sums[0] += out[i] = usual_exponential(in[i]);
  float sum = 0;
  for (const float each : sums) sum += each;
  for (i = 0; i < cols; ++i) out[i] *= 1 / sum;
}

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), count = rows * cols;
  const float* in = x.data<float>();
  float* out = y.data<float>();
  if (count == 0) return;
  const bool checked = std::isnan(out[0]) && std::isnan(out[count - 1]);
  for (int64_t row = 0; row < rows; ++row, in += cols, out += cols)
    checked ? careful(in, out, cols) : usual(in, out, cols);
}
