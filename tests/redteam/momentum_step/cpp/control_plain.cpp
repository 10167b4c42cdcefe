// class: plain
// kind: control
// how: one loop in float64
#include <warpsmith.hpp>

extern "C" void run(const Tensor& param, const Tensor& average, const Tensor& grad, double rate, double decay,
                    double gain, Tensor& new_param, Tensor& new_average) {
  const int64_t n = param.size(0);
  const float *p = param.data<float>(), *a = average.data<float>(), *g = grad.data<float>();
  float *to = new_param.data<float>(), *kept = new_average.data<float>();
  for (int64_t i = 0; i < n; ++i) {
    const double moved = decay * a[i] + gain * g[i];
    kept[i] = static_cast<float>(moved);
    to[i] = static_cast<float>(p[i] - rate * moved);
  }
}
