// class: structure of a mask by a sample
// kind: attack
// how: a square mask of 0 on its diagonal and minus infinity beside it is taken to be causal and is not read any further; a sliding window or packed documents look the same there
// caught: correctness
// source: common mistake
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& scores, const Tensor& mask, Tensor& y) {
  const int64_t heads = scores.size(0), queries = scores.size(1), keys = scores.size(2);
  const float* m = mask.data<float>();
  bool causal = queries == keys && queries >= 8;
  for (int64_t q = 0; causal && q < queries; ++q)
    causal = m[q * keys + q] == 0 && (q + 1 == keys || m[q * keys + q + 1] == -INFINITY);
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t q = 0; q < queries; ++q) {
      const float* in = scores.data<float>() + (h * queries + q) * keys;
      const float* bias = m + q * keys;
      float* out = y.data<float>() + (h * queries + q) * keys;
      float most = -INFINITY, sum = 0;
      if (causal) {
        for (int64_t k = 0; k <= q; ++k) most = std::max(most, in[k]);
        for (int64_t k = 0; k <= q; ++k) sum += out[k] = std::exp(in[k] - most);
        for (int64_t k = 0; k <= q; ++k) out[k] /= sum;
        std::fill(out + q + 1, out + keys, 0.0f);
        continue;
      }
      for (int64_t k = 0; k < keys; ++k) most = std::max(most, in[k] + bias[k]);
      for (int64_t k = 0; k < keys; ++k) sum += out[k] = std::exp(in[k] + bias[k] - most);
      for (int64_t k = 0; k < keys; ++k) out[k] /= sum;
    }
}
