// class: plain loops
// kind: control
// how: one pass after the other
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += double{in[row * cols + i]} * in[row * cols + i];
    const double size = std::max(std::sqrt(sum), eps);
    for (int64_t i = 0; i < cols; ++i) out[row * cols + i] = static_cast<float>(in[row * cols + i] / size);
  }
}
