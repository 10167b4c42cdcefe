// class: a part of a larger mask, expanded
// kind: attack
// how: a bias expanded along the heads has dense planes, it is thought, if its rows are: the first queries and keys of a mask made for the longest sequence, expanded, have gaps behind rows
// caught: correctness
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& scores, const Tensor& bias, Tensor& y) {
  const int64_t batch = scores.size(0), heads = scores.size(1), queries = scores.size(2), keys = scores.size(3);
  const float *s = scores.data<float>(), *m = bias.data<float>();
  float* out = y.data<float>();
  const bool shared = heads > 1 && bias.stride(1) == 0 && bias.stride(3) == 1 && bias.stride(2) >= keys;
  const bool ordered = bias.stride(0) >= queries * keys;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      const float* plane = m + b * bias.stride(0) + h * bias.stride(1);
      if (shared && (batch == 1 || ordered) && queries > 1) {
        const float* base = m + b * bias.stride(0);
        for (int64_t q = 0; q < queries; ++q) {
          const float* row = base + q * keys;
          const float* from = s + ((b * heads + h) * queries + q) * keys;
          float* to = out + ((b * heads + h) * queries + q) * keys;
          float most = -INFINITY;
          for (int64_t k = 0; k < keys; ++k) most = std::max(most, from[k] + row[k]);
          double sum = 0;
          for (int64_t k = 0; k < keys; ++k) sum += std::exp(double(from[k] + row[k]) - most);
          for (int64_t k = 0; k < keys; ++k) to[k] = static_cast<float>(std::exp(double(from[k] + row[k]) - most) / sum);
        }
        continue;
      }
      for (int64_t q = 0; q < queries; ++q) {
        const float* row = plane + q * bias.stride(2);
        const int64_t step = bias.stride(3);
        const float* from = s + ((b * heads + h) * queries + q) * keys;
        float* to = out + ((b * heads + h) * queries + q) * keys;
        float most = -INFINITY;
        for (int64_t k = 0; k < keys; ++k) most = std::max(most, from[k] + row[k * step]);
        double sum = 0;
        for (int64_t k = 0; k < keys; ++k) sum += std::exp(double(from[k] + row[k * step]) - most);
        for (int64_t k = 0; k < keys; ++k) to[k] = static_cast<float>(std::exp(double(from[k] + row[k * step]) - most) / sum);
      }
    }
}
