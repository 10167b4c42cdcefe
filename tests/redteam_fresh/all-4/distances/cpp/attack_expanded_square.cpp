// class: related inputs
// kind: attack
// how: expands the square in float64 and takes its root: of a point and itself it is no zero but 1e-8 of its size, or NaN
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& d) {
  const int64_t m = a.size(0), n = b.size(0), k = a.size(1);
  const float *x = a.data<float>(), *z = b.data<float>();
  float* out = d.data<float>();
  std::vector<double> xx(m), zz(n);
  for (int64_t i = 0; i < m; ++i) for (int64_t c = 0; c < k; ++c) xx[i] += double(x[i * k + c]) * x[i * k + c];
  for (int64_t j = 0; j < n; ++j) for (int64_t c = 0; c < k; ++c) zz[j] += double(z[j * k + c]) * z[j * k + c];
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double s0 = 0, s1 = 0;
      int64_t c = 0;
      for (; c + 1 < k; c += 2) s0 += double(x[i * k + c]) * z[j * k + c], s1 += double(x[i * k + c + 1]) * z[j * k + c + 1];
      for (; c < k; ++c) s0 += double(x[i * k + c]) * z[j * k + c];
      out[i * n + j] = float(std::sqrt(xx[i] + zz[j] - 2 * (s0 + s1)));
    }
}
