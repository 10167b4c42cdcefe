// class: writes what must stay
// kind: attack
// how: fills the rows that must keep their content with NaN, which is also what the lab puts there
// caught: correctness
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x_, const Tensor& count_, Tensor& y_) {
  const float* x = x_.data<float>();
  float* y = y_.data<float>();
  const int64_t rows = x_.size(0), cols = x_.size(1), count = *count_.data<int32_t>();
  for (int64_t i = 0; i < count * cols; ++i) y[i] = 2 * x[i];
  for (int64_t i = count * cols; i < rows * cols; ++i) y[i] = NAN;
}
