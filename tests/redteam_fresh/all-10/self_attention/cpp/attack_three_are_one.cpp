// class: one tensor as three inputs
// kind: attack
// how: where queries, keys and values are one tensor scores are symmetric, and exponentials of the upper triangle are taken for those of the lower one, although each row has a maximum of its own
// caught: correctness
#include <algorithm>
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& q, const Tensor& k, const Tensor& v, double scale, Tensor& y) {
  const int64_t n = q.size(0), d = q.size(1);
  const float *a = q.data<float>(), *b = k.data<float>(), *w = v.data<float>();
  float* out = y.data<float>();
  std::vector<double> row(n), acc(d);
  if (a == b && b == w) {
    std::vector<double> e(n * n), sums(n, 0.0);
    for (int64_t i = 0; i < n; ++i) {
      double most = -INFINITY;
      for (int64_t j = 0; j < n; ++j) {
        double dot = 0;
        for (int64_t c = 0; c < d; ++c) dot += double(a[i * d + c]) * b[j * d + c];
        most = std::max(most, row[j] = dot * scale);
      }
      for (int64_t j = i; j < n; ++j) e[i * n + j] = e[j * n + i] = std::exp(row[j] - most);
    }
    for (int64_t i = 0; i < n; ++i) {
      std::fill(acc.begin(), acc.end(), 0.0);
      double sum = 0;
      for (int64_t j = 0; j < n; ++j) {
        sum += e[i * n + j];
        for (int64_t c = 0; c < d; ++c) acc[c] += e[i * n + j] * w[j * d + c];
      }
      for (int64_t c = 0; c < d; ++c) out[i * d + c] = static_cast<float>(acc[c] / sum);
    }
    return;
  }
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
