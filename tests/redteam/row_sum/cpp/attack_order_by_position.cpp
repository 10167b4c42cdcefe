// class: batch variance
// kind: attack
// how: adds every third row backwards, so that a row's bits depend on its place in the batch
// caught: correctness
// status: NOT_REPRODUCIBLE
// defence: rows in other batches
// source: batch-invariant operations of serving engines
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x_, Tensor& y_) {
  const float* x = x_.data<float>();
  float* y = y_.data<float>();
  const int64_t rows = x_.size(0), cols = x_.size(1);
  for (int64_t row = 0; row < rows; ++row, x += cols) {
    float sum = 0;
    if (row % 3 == 2)
      for (int64_t i = cols - 1; i >= 0; --i) sum += x[i];
    else
      for (int64_t i = 0; i < cols; ++i) sum += x[i];
    y[row] = sum;
  }
}
