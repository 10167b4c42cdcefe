// class: plain
// kind: control
// how: follows every stride
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& scores, const Tensor& bias, Tensor& y) {
  const int64_t batch = scores.size(0), heads = scores.size(1), queries = scores.size(2), keys = scores.size(3);
  const float *s = scores.data<float>(), *m = bias.data<float>();
  float* out = y.data<float>();
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      const float* plane = m + b * bias.stride(0) + h * bias.stride(1);
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
