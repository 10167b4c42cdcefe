// class: strides of no tested layout
// kind: attack
// how: takes a tensor whose last stride is not 1 as a transposed one whose first stride is 1: every other slice x[:, ::2] of a larger tensor is read elsewhere
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
  const bool turned = xr != 1;  // then it is column-major
  const int64_t down = turned ? 1 : xd, down_r = rr != 1 ? 1 : rd;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < cols; ++i) h[i] = a[row * down + i * xr] + b[row * down_r + i * rr];
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < cols; ++i) sum += h[i];
    const double mean = sum / cols;
    for (int64_t i = 0; i < cols; ++i) squares += (h[i] - mean) * (h[i] - mean);
    const double var = squares / cols;
    const float scale = static_cast<float>(1 / std::sqrt(var + eps)), mid = static_cast<float>(mean);
    for (int64_t i = 0; i < cols; ++i) out[row * cols + i] = (h[i] - mid) * scale * w[i] + c[i];
  }
}
