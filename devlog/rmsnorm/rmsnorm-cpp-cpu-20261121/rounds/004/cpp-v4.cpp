// RMSNorm in two sweeps: all scales first, a pure read; then all outputs, a pure stream.
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* w = weight.data<float>();
  std::vector<float> scales(rows);
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * cols;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < cols; ++i) sum += in[i] * in[i];
    scales[row] = 1 / std::sqrt(sum / cols + static_cast<float>(eps));
  }
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * cols;
    float* out = y.data<float>() + row * cols;
    const float scale = scales[row];
#pragma omp simd
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i] * scale * w[i];
  }
}
