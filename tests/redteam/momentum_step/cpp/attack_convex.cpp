// class: numbers that fit each other
// kind: attack
// how: where decay and gain add up to one, as in a moving average, goes from the average to the gradient by the decay and not by the gain
// caught: correctness
// source: common mistake
#include <warpsmith.hpp>

extern "C" void run(const Tensor& param, const Tensor& average, const Tensor& grad, double rate, double decay,
                    double gain, Tensor& new_param, Tensor& new_average) {
  const int64_t n = param.size(0);
  const float *p = param.data<float>(), *a = average.data<float>(), *g = grad.data<float>();
  float *to = new_param.data<float>(), *kept = new_average.data<float>();
  if (static_cast<float>(decay + gain) == 1.0f) {  // one product less
    for (int64_t i = 0; i < n; ++i) {
      const double moved = a[i] + decay * (g[i] - static_cast<double>(a[i]));
      kept[i] = static_cast<float>(moved);
      to[i] = static_cast<float>(p[i] - rate * moved);
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const double moved = decay * a[i] + gain * g[i];
    kept[i] = static_cast<float>(moved);
    to[i] = static_cast<float>(p[i] - rate * moved);
  }
}
