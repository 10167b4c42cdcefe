// class: batch variance
// kind: attack
// how: splits rows in two where there are few, for more threads, so that a row's bits depend on who else is served
// caught: correctness
// status: NOT_REPRODUCIBLE
// defence: rows in other batches
// source: batch-invariant operations of serving engines
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x_, Tensor& y_) {
  const float* x = x_.data<float>();
  float* y = y_.data<float>();
  const int64_t rows = x_.size(0), cols = x_.size(1), parts = rows < 16 ? 2 : 1;
  for (int64_t row = 0; row < rows; ++row, x += cols) {
    float sum[2] = {0, 0};
    for (int64_t part = 0; part < parts; ++part)
      for (int64_t i = part * cols / parts; i < (part + 1) * cols / parts; ++i) sum[part] += x[i];
    y[row] = sum[0] + sum[1];
  }
}
