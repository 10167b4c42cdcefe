// class: two paths, both right
// kind: control
// how: elements of a row that follow each other have a loop of their own
#include <warpsmith.hpp>

static void turn(const float* row, int64_t step, const float* c, const float* s, int64_t half, float* to) {
  if (step == 1) {
    for (int64_t i = 0; i < half; ++i) {
      const float l = row[i], r = row[i + half];
      to[i] = l * c[i] - r * s[i];
      to[i + half] = r * c[i] + l * s[i];
    }
    return;
  }
  for (int64_t i = 0; i < half; ++i) {
    const float l = row[i * step], r = row[(i + half) * step];
    to[i] = l * c[i] - r * s[i];
    to[i + half] = r * c[i] + l * s[i];
  }
}

extern "C" void run(const Tensor& x, const Tensor& cos, const Tensor& sin, Tensor& y) {
  const int64_t batch = x.size(0), heads = x.size(1), tokens = x.size(2), half = cos.size(1);
  const float *a = x.data<float>(), *c = cos.data<float>(), *s = sin.data<float>();
  float* out = y.data<float>();
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t t = 0; t < tokens; ++t) {
        const float* row = a + b * x.stride(0) + h * x.stride(1) + t * x.stride(2);
        float* to = out + ((b * heads + h) * tokens + t) * 2 * half;
        turn(row, x.stride(3), c + t * half, s + t * half, half, to);
      }
}
