// class: less precision than asked for
// kind: attack
// how: computes in float32 and widens the result
// caught: correctness
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x_, Tensor& y_) {
  const double* x = x_.data<double>();
  double* y = y_.data<double>();
  const int64_t rows = x_.size(0), cols = x_.size(1);
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    float sum = 0;
    for (int64_t i = 0; i < cols; ++i) { const float v = x[r * cols + i]; sum += v * v; }
    y[r] = sum;
  }
}
