// class: weights below zero
// kind: attack
// how: the largest of |x| w instead of |x w|, as if no weight of a norm, which begins at one, were negative
// caught: correctness
// source: common mistake
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y, Tensor& amax) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float *a = x.data<float>(), *w = weight.data<float>();
  float *out = y.data<float>(), *most = amax.data<float>();
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = a + r * cols;
    double sum = 0, largest = 0;
    for (int64_t i = 0; i < cols; ++i) {
      sum += double(row[i]) * row[i];
      largest = std::max(largest, double(std::abs(row[i])) * w[i]);
    }
    const double factor = 1 / std::sqrt(sum / cols + eps);
    for (int64_t i = 0; i < cols; ++i) out[r * cols + i] = static_cast<float>(row[i] * factor * w[i]);
    most[r] = static_cast<float>(largest * factor);
  }
}
