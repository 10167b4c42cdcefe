// class: plain loops
// kind: control
// how: one pass after the other
#include <cmath>
#include <warpsmith.hpp>


extern "C" void run(const Tensor& x, const Tensor& mean, const Tensor& var, double eps, Tensor& y) {
  const int64_t n = x.size(0), c = x.size(1), p = x.size(2);
  const float *in = x.data<float>(), *m = mean.data<float>(), *v = var.data<float>();
  float* out = y.data<float>();
  for (int64_t i = 0; i < n * c; ++i) {
    const float mid = m[i % c], scale = static_cast<float>(1 / std::sqrt(v[i % c] + eps));
    for (int64_t j = 0; j < p; ++j) out[i * p + j] = (in[i * p + j] - mid) * scale;
  }
}
