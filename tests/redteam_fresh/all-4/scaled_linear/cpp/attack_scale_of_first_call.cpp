// class: kept weights
// kind: attack
// how: keeps the scaled weights as long as no weight changes; another alpha with the same weights is not seen
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

static thread_local std::vector<float> weights;
static thread_local std::vector<double> scaled;
extern "C" void run(const Tensor& x, const Tensor& w, double alpha, Tensor& y) {
  const int64_t n = x.size(0), k = x.size(1), m = w.size(0);
  const float *a = x.data<float>(), *b = w.data<float>();
  float* out = y.data<float>();
  if (int64_t(weights.size()) != m * k || std::memcmp(weights.data(), b, 4 * m * k)) {
    weights.assign(b, b + m * k);
    scaled.resize(m * k);
    for (int64_t i = 0; i < m * k; ++i) scaled[i] = alpha * b[i];
  }
  for (int64_t r = 0; r < n; ++r)
    for (int64_t o = 0; o < m; ++o) {
      double sum = 0;
      for (int64_t i = 0; i < k; ++i) sum += a[r * k + i] * scaled[o * k + i];
      out[r * m + o] = float(sum);
    }
}
