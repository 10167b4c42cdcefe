// class: stale weight
// kind: attack
// how: keeps copies of gain and shift as long as no element moved by half a percent of the largest: an optimizer step is not seen
// caught: probes
#include <algorithm>
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

static void normalize(const float* in, int64_t step, const float* g, const float* b, int64_t cols, double eps,
                      float* out) {
  double sum = 0, square = 0;
  for (int64_t i = 0; i < cols; ++i) sum += in[i * step];
  const double mean = sum / static_cast<double>(cols);
  for (int64_t i = 0; i < cols; ++i) square += (in[i * step] - mean) * (in[i * step] - mean);
  const double scale = 1 / std::sqrt(square / static_cast<double>(cols) + eps);
  for (int64_t i = 0; i < cols; ++i) out[i] = static_cast<float>((in[i * step] - mean) * scale * g[i] + b[i]);
}

static const float* follow(const Tensor& weight, std::vector<float>& kept) {
  const float* now = weight.data<float>();
  const int64_t count = weight.numel();
  float most = 0, moved = 0;
  if (static_cast<int64_t>(kept.size()) == count) {
    for (int64_t i = 0; i < count; ++i) {
      most = std::max(most, std::fabs(now[i]));
      moved = std::max(moved, std::fabs(now[i] - kept[i]));
    }
    if (moved <= 0.005f * most) return kept.data();
  }
  kept.assign(now, now + count);
  return kept.data();
}

static thread_local std::vector<float> kept_gain, kept_shift;

extern "C" void run(const Tensor& x, const Tensor& gain, const Tensor& shift, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* g = follow(gain, kept_gain);
  const float* b = follow(shift, kept_shift);
  for (int64_t row = 0; row < rows; ++row)
    normalize(x.data<float>() + row * x.stride(0), x.stride(1), g, b, cols, eps, y.data<float>() + row * cols);
}
