// class: number at zero
// kind: attack
// how: without momentum (decay 0) takes a plain step and writes no average
// caught: correctness
// source: common mistake
#include <warpsmith.hpp>

extern "C" void run(const Tensor& param, const Tensor& average, const Tensor& grad, double rate, double decay,
                    double gain, Tensor& new_param, Tensor& new_average) {
  const int64_t n = param.size(0);
  const float *p = param.data<float>(), *a = average.data<float>(), *g = grad.data<float>();
  float *to = new_param.data<float>(), *kept = new_average.data<float>();
  if (decay == 0) {
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(p[i] - rate * gain * g[i]);
    return;
  }
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < n; ++i) {
    const double moved = decay * a[i] + gain * g[i];
    kept[i] = static_cast<float>(moved);
    to[i] = static_cast<float>(p[i] - rate * moved);
  }
}
