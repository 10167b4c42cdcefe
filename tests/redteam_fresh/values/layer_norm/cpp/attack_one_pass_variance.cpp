// class: cancelling variance
// kind: attack
// how: rows of 1000 or more: variance as mean(h^2) - mean(h)^2 in float32, cut at zero: garbage where the mean is a few thousand deviations from zero
// caught: correctness
// source: own idea
#include <cmath>
#include <cstdlib>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& r, const Tensor& weight, const Tensor& bias, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const int64_t xd = x.stride(0), xr = x.stride(1), rd = r.stride(0), rr = r.stride(1);
  const float *a = x.data<float>(), *b = r.data<float>(), *w = weight.data<float>(), *c = bias.data<float>();
  float* out = y.data<float>();
  std::vector<float> h(cols);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < cols; ++i) h[i] = a[row * xd + i * xr] + b[row * rd + i * rr];
    float part[128] = {}, sq[128] = {};
    for (int64_t i = 0; i < cols; ++i) { part[i % 128] += h[i]; sq[i % 128] += h[i] * h[i]; }
    double total = 0, square = 0;
    for (int k = 0; k < 128; ++k) { total += part[k]; square += sq[k]; }
    const double mean = total / cols;
    float var = static_cast<float>(std::fmax(square / cols - mean * mean, 0.0));
    if (cols < 1000) {
      double exact = 0, about = 0;
      for (int64_t i = 0; i < cols; ++i) about += h[i];
      for (int64_t i = 0; i < cols; ++i) exact += (h[i] - about / cols) * (h[i] - about / cols);
      var = static_cast<float>(exact / cols);
    }
    const float scale = static_cast<float>(1 / std::sqrt(var + eps)), mid = static_cast<float>(mean);
    for (int64_t i = 0; i < cols; ++i) out[row * cols + i] = (h[i] - mid) * scale * w[i] + c[i];
  }
}
