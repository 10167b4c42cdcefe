// class: plain loops
// kind: control
// how: adds each row in one order, whatever the batch
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x_, Tensor& y_) {
  const float* x = x_.data<float>();
  float* y = y_.data<float>();
  const int64_t rows = x_.size(0), cols = x_.size(1);
#pragma omp parallel for
  for (int64_t row = 0; row < rows; ++row) {
    float sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += x[row * cols + i];
    y[row] = sum;
  }
}
