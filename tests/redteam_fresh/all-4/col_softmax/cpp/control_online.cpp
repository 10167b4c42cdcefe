// class: online down the columns
// kind: control
// how: a running maximum down each column, which masked elements leave alone
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t keys = x.size(0), heads = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  std::vector<double> most(heads, -INFINITY), sum(heads, 0.0);
  for (int64_t k = 0; k < keys; ++k)
    for (int64_t h = 0; h < heads; ++h) {
      const double v = in[k * heads + h], next = std::max(most[h], v);
      if (next > -INFINITY || std::isnan(next)) sum[h] = sum[h] * std::exp(most[h] - next) + std::exp(v - next);
      most[h] = next;
    }
  for (int64_t k = 0; k < keys; ++k)
    for (int64_t h = 0; h < heads; ++h) out[k * heads + h] = float(std::exp(in[k * heads + h] - most[h]) / sum[h]);
}
