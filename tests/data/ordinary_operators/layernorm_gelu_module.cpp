#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& norm_weight, const Tensor& norm_bias, Tensor& out) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float *first = x.data<float>(), *scale = norm_weight.data<float>(), *shift = norm_bias.data<float>();
  float* result = out.data<float>();
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = first + row * cols;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < cols; ++i) sum += in[i];
    const double mean = sum / cols;
    for (int64_t i = 0; i < cols; ++i) squares += (in[i] - mean) * (in[i] - mean);
    const double inverse = 1 / std::sqrt(squares / cols + 1e-5);
    for (int64_t i = 0; i < cols; ++i) {
      const float value = static_cast<float>((in[i] - mean) * inverse) * scale[i] + shift[i];
      result[row * cols + i] = 0.5f * value * std::erfc(-value * 0.70710678f);
    }
  }
}
