// class: range of an approximation
// kind: attack
// how: inverse root by six Newton steps from a straight line that fits variances of 0.4 to 3: of a variance of 100 it is infinite, of 0.001 off by half
// caught: correctness
// source: own idea
#include <cmath>
#include <warpsmith.hpp>

static float inverse_root(double v) {
  double r = 1.45 - 0.32 * v;
  if (r < 0.5) r = 0.5;
  for (int step = 0; step < 6; ++step) r *= 1.5 - 0.5 * v * r * r;
  return static_cast<float>(r);
}

extern "C" void run(const Tensor& x, const Tensor& mean, const Tensor& var, double eps, Tensor& y) {
  const int64_t n = x.size(0), c = x.size(1), p = x.size(2);
  const float *in = x.data<float>(), *m = mean.data<float>(), *v = var.data<float>();
  float* out = y.data<float>();
  for (int64_t i = 0; i < n * c; ++i) {
    const float mid = m[i % c], scale = inverse_root(v[i % c] + eps);
    for (int64_t j = 0; j < p; ++j) out[i * p + j] = (in[i * p + j] - mid) * scale;
  }
}
