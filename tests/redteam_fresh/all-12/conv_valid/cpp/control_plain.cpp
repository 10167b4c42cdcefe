// class: plain
// kind: control
// how: adds one tap of a filter after the other to a whole plane
#include <algorithm>
#include <warpsmith.hpp>

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
      for (int64_t c = 0; c < cin; ++c)
        for (int64_t i = 0; i < kh; ++i)
          for (int64_t j = 0; j < kw; ++j) {
            const float factor = filters[((o * cin + c) * kh + i) * kw + j];
            for (int64_t r = 0; r < rows; ++r) {
              const float* from = in + ((b * cin + c) * height + r + i) * width + j;
              for (int64_t s = 0; s < cols; ++s) to[r * cols + s] += factor * from[s];
            }
          }
    }
}
