// class: plain loops
// kind: control
// how: one pass after the other
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& mask, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  const bool* allowed = mask.data<bool>();
  float* out = y.data<float>();
  
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) if (allowed[row * cols + i]) sum += in[row * cols + i];
    out[row] = static_cast<float>(sum);
  }
}
