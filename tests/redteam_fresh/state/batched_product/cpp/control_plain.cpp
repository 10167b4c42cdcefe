// class: plain loops
// kind: control
// how: row of a times row of b, added up where the result lies
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& c) {
  const int64_t batch = a.size(0), m = a.size(1), k = a.size(2), n = b.size(2);
  const float *left = a.data<float>(), *right = b.data<float>();
  float* out = c.data<float>();
  std::fill_n(out, batch * m * n, 0.0f);
  for (int64_t g = 0; g < batch; ++g, left += m * k, right += k * n, out += m * n)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t p = 0; p < k; ++p)
        for (int64_t j = 0; j < n; ++j) out[i * n + j] += left[i * k + p] * right[p * n + j];
}
