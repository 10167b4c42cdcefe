// class: plain
// kind: control
// how: a result after the other
#include <warpsmith.hpp>

static float at(const float* x, const float* k, int64_t h, int64_t w, int64_t kh, int64_t kw, int64_t i, int64_t j) {
  float sum = 0;
  for (int64_t a = 0; a < kh; ++a)
    for (int64_t b = 0; b < kw; ++b) {
      const int64_t row = i + a - kh / 2, col = j + b - kw / 2;
      if (row >= 0 && row < h && col >= 0 && col < w) sum += x[row * w + col] * k[a * kw + b];
    }
  return sum;
}

extern "C" void run(const Tensor& x, const Tensor& weight, Tensor& y) {
  const int64_t h = x.size(0), w = x.size(1), kh = weight.size(0), kw = weight.size(1);
  const float *in = x.data<float>(), *k = weight.data<float>();
  float* out = y.data<float>();
  for (int64_t i = 0; i < h; ++i)
    for (int64_t j = 0; j < w; ++j) out[i * w + j] = at(in, k, h, w, kh, kw, i, j);
}
