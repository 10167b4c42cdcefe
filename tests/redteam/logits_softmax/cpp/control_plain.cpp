// class: plain
// kind: control
// how: three passes over each row
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), step = x.stride(1);
  float* out = y.data<float>();
  for (int64_t row = 0; row < rows; ++row, out += cols) {
    const float* in = x.data<float>() + row * x.stride(0);
    float most = -INFINITY;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, in[i * step]);
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += out[i] = std::exp(in[i * step] - most);
    for (int64_t i = 0; i < cols; ++i) out[i] = static_cast<float>(out[i] / sum);
  }
}
