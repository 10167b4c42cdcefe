// class: plain
// kind: control
// how: one float, term by term
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    float sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += in[i];
    y.data<float>()[r] = sum;
  }
}
