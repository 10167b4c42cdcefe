// class: plain
// kind: control
// how: three passes over each row
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& scores, const Tensor& mask, Tensor& y) {
  const int64_t heads = scores.size(0), queries = scores.size(1), keys = scores.size(2);
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t q = 0; q < queries; ++q) {
      const float* in = scores.data<float>() + (h * queries + q) * keys;
      const float* bias = mask.data<float>() + q * keys;
      float* out = y.data<float>() + (h * queries + q) * keys;
      float most = -INFINITY, sum = 0;
      for (int64_t k = 0; k < keys; ++k) most = std::max(most, in[k] + bias[k]);
      for (int64_t k = 0; k < keys; ++k) sum += out[k] = std::exp(in[k] + bias[k] - most);
      for (int64_t k = 0; k < keys; ++k) out[k] /= sum;
    }
}
