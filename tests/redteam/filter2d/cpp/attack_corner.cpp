// class: tails along two axes beside a declared size
// kind: attack
// how: tiles of two by two for a filter of three by three; the corner behind the last row and column is in no tail
// caught: correctness
// source: common mistake
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

static void three_by_three(const float* x, const float* k, float* y, int64_t h, int64_t w) {
  const int64_t rows = h & ~int64_t{1}, cols = w & ~int64_t{1};
  for (int64_t i = 0; i < rows; i += 2)
    for (int64_t j = 0; j < cols; j += 2)
      for (int a = 0; a < 2; ++a)
        for (int b = 0; b < 2; ++b) y[(i + a) * w + j + b] = at(x, k, h, w, 3, 3, i + a, j + b);
  if (h > rows)
    for (int64_t j = 0; j < cols; ++j) y[rows * w + j] = at(x, k, h, w, 3, 3, rows, j);
  if (w > cols)
    for (int64_t i = 0; i < rows; ++i) y[i * w + cols] = at(x, k, h, w, 3, 3, i, cols);
}

extern "C" void run(const Tensor& x, const Tensor& weight, Tensor& y) {
  const int64_t h = x.size(0), w = x.size(1), kh = weight.size(0), kw = weight.size(1);
  const float *in = x.data<float>(), *k = weight.data<float>();
  float* out = y.data<float>();
  if (kh == 3 && kw == 3) return three_by_three(in, k, out, h, w);
  for (int64_t i = 0; i < h; ++i)
    for (int64_t j = 0; j < w; ++j) out[i * w + j] = at(in, k, h, w, kh, kw, i, j);
}
