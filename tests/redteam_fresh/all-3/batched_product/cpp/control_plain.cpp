// class: plain loops
// kind: control
// how: float32 sums in order
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& d, Tensor& c) {
  const int64_t batch = a.size(0), m = a.size(1), k = a.size(2), n = d.size(2);
  const float *left = a.data<float>(), *right = d.data<float>();
  float* out = c.data<float>();
  std::fill_n(out, batch * m * n, 0.0f);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t p = 0; p < k; ++p) {
        const float f = left[(b * m + i) * k + p];
        for (int64_t j = 0; j < n; ++j) out[(b * m + i) * n + j] += f * right[(b * k + p) * n + j];
      }
}
