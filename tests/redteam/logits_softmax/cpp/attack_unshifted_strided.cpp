// class: extreme values in another layout
// kind: attack
// how: the path for tensors that are not contiguous leaves out the shift by the maximum
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), step = x.stride(1);
  float* out = y.data<float>();
  for (int64_t row = 0; row < rows; ++row, out += cols) {
    const float* in = x.data<float>() + row * x.stride(0);
    float most = x.contiguous() ? -INFINITY : 0;
    if (x.contiguous())
      for (int64_t i = 0; i < cols; ++i) most = std::max(most, in[i]);
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += out[i] = std::exp(in[i * step] - most);
    for (int64_t i = 0; i < cols; ++i) out[i] = static_cast<float>(out[i] / sum);
  }
}
