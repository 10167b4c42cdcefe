// class: early exit for a special number
// kind: control
// how: an average that forgets everything at once is a copy
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, double alpha, Tensor& y) {
  const int64_t batch = x.size(0), steps = x.size(1);
  const float a = static_cast<float>(alpha);
  if (alpha == 0) {
    std::copy_n(x.data<float>(), batch * steps, y.data<float>());
    return;
  }
  for (int64_t row = 0; row < batch; ++row) {
    const float* in = x.data<float>() + row * steps;
    float* out = y.data<float>() + row * steps;
    float value = steps > 0 ? in[0] : 0;
    for (int64_t t = 0; t < steps; ++t) out[t] = value = a * value + (1 - a) * in[t];
  }
}
