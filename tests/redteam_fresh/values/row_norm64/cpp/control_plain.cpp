// class: plain loops
// kind: control
// how: one pass after the other
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const double* in = x.data<double>();
  double* out = y.data<double>();
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) { const double v = in[row * cols + i]; sum += v * v; }
    out[row] = sum;
  }
}
