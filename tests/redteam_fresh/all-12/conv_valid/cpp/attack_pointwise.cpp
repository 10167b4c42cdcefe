// class: two sizes at once
// kind: attack
// how: has a path for filters of 1 by 1 and eight channels or more that takes four channels at a time, but the rest from the last multiple of eight on: four channels count twice where cin % 8 is 5 to 7
// caught: correctness
#include <algorithm>
#include <warpsmith.hpp>

static void filter_pointwise(const float* image, const float* filter, float* to, int64_t cin, int64_t plane) {
  int64_t c = 0;
  for (; c + 4 <= cin; c += 4) {
    const float *a = image + c * plane, *b = a + plane, *d = b + plane, *e = d + plane;
    for (int64_t i = 0; i < plane; ++i)
      to[i] += filter[c] * a[i] + filter[c + 1] * b[i] + filter[c + 2] * d[i] + filter[c + 3] * e[i];
  }
  for (c = cin & ~int64_t{7}; c < cin && cin % 4; ++c)
    for (int64_t i = 0; i < plane; ++i) to[i] += filter[c] * image[c * plane + i];
}

extern "C" void run(const Tensor& x, const Tensor& w, const Tensor& bias, Tensor& y) {
  const int64_t batch = x.size(0), cin = x.size(1), height = x.size(2), width = x.size(3);
  const int64_t cout = w.size(0), kh = w.size(2), kw = w.size(3), rows = height - kh + 1, cols = width - kw + 1;
  const float *in = x.data<float>(), *filters = w.data<float>(), *first = bias.data<float>();
  float* out = y.data<float>();
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t o = 0; o < cout; ++o) {
      float* to = out + (b * cout + o) * rows * cols;
      std::fill_n(to, rows * cols, first[o]);
      const float *image = in + b * cin * height * width, *filter = filters + o * cin * kh * kw;
      if (kh == 1 && kw == 1 && cin >= 8) {
        filter_pointwise(image, filter, to, cin, rows * cols);
        continue;
      }
      for (int64_t c = 0; c < cin; ++c)
        for (int64_t i = 0; i < kh; ++i)
          for (int64_t j = 0; j < kw; ++j) {
            const float factor = filter[(c * kh + i) * kw + j];
            for (int64_t r = 0; r < rows; ++r) {
              const float* from = image + (c * height + r + i) * width + j;
              for (int64_t s = 0; s < cols; ++s) to[r * cols + s] += factor * from[s];
            }
          }
    }
}
