// class: plain loops
// kind: control
// how: the first rows alone
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x_, const Tensor& count_, Tensor& y_) {
  const float* x = x_.data<float>();
  float* y = y_.data<float>();
  const int64_t rows = x_.size(0), cols = x_.size(1), count = *count_.data<int32_t>();
  for (int64_t i = 0; i < count * cols; ++i) y[i] = 2 * x[i];

}
