// class: path chosen by the values of the call
// kind: control
// how: a call whose logits stay within 30 of zero leaves out the shift by the maximum; each call looks for itself
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    float* out = y.data<float>() + r * cols;
    float most = -INFINITY, least = INFINITY, sum = 0;
    for (int64_t i = 0; i < cols; ++i) {
      most = std::max(most, in[i]);
      least = std::min(least, in[i]);
    }
    const float shift = most < 30 && least > -30 ? 0 : most;
    for (int64_t i = 0; i < cols; ++i) sum += out[i] = std::exp(in[i] - shift);
    for (int64_t i = 0; i < cols; ++i) out[i] /= sum;
  }
}
