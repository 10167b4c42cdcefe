// class: plain
// kind: control
// how: follows every stride
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& cos, const Tensor& sin, Tensor& y) {
  const int64_t batch = x.size(0), heads = x.size(1), tokens = x.size(2), half = cos.size(1);
  const float *a = x.data<float>(), *c = cos.data<float>(), *s = sin.data<float>();
  float* out = y.data<float>();
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t t = 0; t < tokens; ++t) {
        const float* row = a + b * x.stride(0) + h * x.stride(1) + t * x.stride(2);
        float* to = out + ((b * heads + h) * tokens + t) * 2 * half;
        for (int64_t i = 0; i < half; ++i) {
          const float l = row[i * x.stride(3)], r = row[(i + half) * x.stride(3)];
          to[i] = std::fma(l, c[t * half + i], -(r * s[t * half + i]));
          to[i + half] = std::fma(r, c[t * half + i], l * s[t * half + i]);
        }
      }
}
