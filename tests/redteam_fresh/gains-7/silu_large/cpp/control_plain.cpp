// class: plain loops
// kind: control
// how: one exponential in double precision an element, on one thread
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t count = x.numel();
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i] / (1.0 + std::exp(-double(in[i]))));
}
