// class: two passes
// kind: control
// how: float32 with fused products, the averages first and then the parameters from what was stored
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& param, const Tensor& average, const Tensor& grad, double rate, double decay,
                    double gain, Tensor& new_param, Tensor& new_average) {
  const int64_t n = param.size(0);
  const float *p = param.data<float>(), *a = average.data<float>(), *g = grad.data<float>();
  float *to = new_param.data<float>(), *kept = new_average.data<float>();
  const float shrink = static_cast<float>(decay), grow = static_cast<float>(gain), step = static_cast<float>(rate);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; ++i) kept[i] = std::fma(shrink, a[i], grow * g[i]);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; ++i) to[i] = std::fma(-step, kept[i], p[i]);
}
