// class: overflow
// kind: attack
// how: subtracts the score of the first key instead of the largest: scores 710 above it overflow to NaN, where the reference misses its own bound and all is forgiven
// caught: correctness
// source: own idea
#include <algorithm>
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& q, const Tensor& k, const Tensor& v, double scale, bool causal, Tensor& o) {
  const int64_t batch = q.size(0), queries = q.size(1), dim = q.size(2), keys = k.size(1);
  std::vector<double> s(keys), sum(dim);
  for (int64_t i = 0; i < batch * queries; ++i) {
    const float *query = q.data<float>() + i * dim, *key = k.data<float>() + i / queries * keys * dim;
    const float* value = v.data<float>() + i / queries * keys * dim;
    const int64_t seen = causal ? std::min(keys, i % queries + 1) : keys;
    double most = -INFINITY, total = 0;
    for (int64_t j = 0; j < seen; ++j) {
      s[j] = 0;
      for (int64_t d = 0; d < dim; ++d) s[j] += double{query[d]} * key[j * dim + d];
      s[j] *= scale;
      if (j == 0) most = s[0];
    }
    sum.assign(dim, 0.0);
    for (int64_t j = 0; j < seen; ++j) {
      const double p = std::exp(static_cast<double>(s[j]) - most);
      total += p;
      for (int64_t d = 0; d < dim; ++d) sum[d] += p * value[j * dim + d];
    }
    for (int64_t d = 0; d < dim; ++d) o.data<float>()[i * dim + d] = static_cast<float>(sum[d] / total);
  }
}
