// RMSNorm: the sum of squares may be reordered, so it runs in vector registers.
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* w = weight.data<float>();
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * cols;
    float* out = y.data<float>() + row * cols;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < cols; ++i) sum += in[i] * in[i];
    const float scale = 1 / std::sqrt(sum / cols + static_cast<float>(eps));
#pragma omp simd
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i] * scale * w[i];
  }
}
