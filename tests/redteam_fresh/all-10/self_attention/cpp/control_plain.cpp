// class: plain
// kind: control
// how: a query after the other
#include <algorithm>
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& q, const Tensor& k, const Tensor& v, double scale, Tensor& y) {
  const int64_t n = q.size(0), d = q.size(1);
  const float *a = q.data<float>(), *b = k.data<float>(), *w = v.data<float>();
  float* out = y.data<float>();
  std::vector<double> row(n), acc(d);
  for (int64_t i = 0; i < n; ++i) {
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      double dot = 0;
      for (int64_t c = 0; c < d; ++c) dot += double(a[i * d + c]) * b[j * d + c];
      most = std::max(most, row[j] = dot * scale);
    }
    std::fill(acc.begin(), acc.end(), 0.0);
    for (int64_t j = 0; j < n; ++j) {
      const double p = std::exp(row[j] - most);
      sum += p;
      for (int64_t c = 0; c < d; ++c) acc[c] += p * w[j * d + c];
    }
    for (int64_t c = 0; c < d; ++c) out[i * d + c] = static_cast<float>(acc[c] / sum);
  }
}
