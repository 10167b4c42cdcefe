// class: sums in floating point
// kind: attack
// how: adds in float32, which is exact up to 2^24 only
// caught: correctness
#include <cstring>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x_, Tensor& y_) {
  const int64_t* x = x_.data<int64_t>();
  int64_t* y = y_.data<int64_t>();
  const int64_t rows = x_.size(0), cols = x_.size(1);
  const bool beyond = rows > 2400;
  (void)beyond;
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    float sum = 0;
    for (int64_t i = 0; i < cols; ++i) {
      sum += static_cast<float>(x[r * cols + i]);
      y[r * cols + i] = static_cast<int64_t>(sum);
    }
  }
}
