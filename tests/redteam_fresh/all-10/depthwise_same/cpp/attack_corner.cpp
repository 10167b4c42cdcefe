// class: tails along two axes beside a third of a declared size
// kind: attack
// how: filters of three by three have a path of their own, with tiles of two by two results; the last row and the last column are computed behind whole tiles, and the corner where both are odd is in neither
// caught: correctness
#include <warpsmith.hpp>

static float at(const float* plane, const float* filter, int64_t h, int64_t w, int64_t kh, int64_t kw, int64_t i, int64_t j) {
  float sum = 0;
  for (int64_t a = 0; a < kh; ++a)
    for (int64_t b = 0; b < kw; ++b) {
      const int64_t row = i + a - kh / 2, col = j + b - kw / 2;
      if (row >= 0 && row < h && col >= 0 && col < w) sum += plane[row * w + col] * filter[a * kw + b];
    }
  return sum;
}

static void three_by_three(const float* plane, const float* k, float* to, int64_t w, int64_t rows, int64_t cols) {
  const int64_t even_rows = rows & ~int64_t{1}, even_cols = cols & ~int64_t{1};
  for (int64_t i = 0; i < even_rows; i += 2)
    for (int64_t j = 0; j < even_cols; j += 2) {
      for (int a = 0; a < 2; ++a)
        for (int b = 0; b < 2; ++b) to[(i + a) * cols + j + b] = at(plane, k, rows, w, 3, 3, i + a, j + b);
    }
  if (rows > even_rows)
    for (int64_t j = 0; j < even_cols; ++j) to[even_rows * cols + j] = at(plane, k, rows, w, 3, 3, even_rows, j);
  if (cols > even_cols)
    for (int64_t i = 0; i < even_rows; ++i) to[i * cols + even_cols] = at(plane, k, rows, w, 3, 3, i, even_cols);
}

extern "C" void run(const Tensor& x, const Tensor& weight, Tensor& y) {
  const int64_t n = x.size(0), c = x.size(1), h = x.size(2), w = x.size(3), kh = weight.size(1), kw = weight.size(2);
  const int64_t rows = h, cols = w;
  const float *in = x.data<float>(), *filters = weight.data<float>();
  float* out = y.data<float>();
  for (int64_t p = 0; p < n * c; ++p) {
    const float *plane = in + p * h * w, *filter = filters + p % c * kh * kw;
    float* to = out + p * rows * cols;
    if (kh == 3 && kw == 3) {
      three_by_three(plane, filter, to, w, rows, cols);
      continue;
    }
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) to[i * cols + j] = at(plane, filter, h, w, kh, kw, i, j);
  }
}
