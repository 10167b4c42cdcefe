// class: online softmax
// kind: control
// how: one pass keeps the largest value and a rescaled sum; a second one writes
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t row = 0; row < rows; ++row, in += cols, out += cols) {
    float most = -FLT_MAX, sum = 0;
    for (int64_t i = 0; i < cols; ++i) {
      if (in[i] > most) {
        sum = sum * std::exp(most - in[i]) + std::exp(in[i] - in[i]);  // NaN where that is infinite
        most = in[i];
      } else {
        sum += std::exp(in[i] - most);
      }
    }
    for (int64_t i = 0; i < cols; ++i) out[i] = std::exp(in[i] - most) / sum;
  }
}
