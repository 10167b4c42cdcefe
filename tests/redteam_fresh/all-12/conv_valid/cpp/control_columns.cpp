// class: columns
// kind: control
// how: gathers what one result reads in one place, then one dot product in float64 for each filter
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& w, const Tensor& bias, Tensor& y) {
  const int64_t batch = x.size(0), cin = x.size(1), height = x.size(2), width = x.size(3);
  const int64_t cout = w.size(0), kh = w.size(2), kw = w.size(3), rows = height - kh + 1, cols = width - kw + 1;
  const int64_t taps = cin * kh * kw;
  const float *in = x.data<float>(), *filters = w.data<float>(), *first = bias.data<float>();
  float* out = y.data<float>();
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<float> column(taps);
      for (int64_t s = 0; s < cols; ++s) {
        float* next = column.data();
        for (int64_t c = 0; c < cin; ++c)
          for (int64_t i = 0; i < kh; ++i)
            for (int64_t j = 0; j < kw; ++j) *next++ = in[((b * cin + c) * height + r + i) * width + s + j];
        for (int64_t o = 0; o < cout; ++o) {
          double sum = first[o];
          for (int64_t t = 0; t < taps; ++t) sum += static_cast<double>(column[t]) * filters[o * taps + t];
          out[((b * cout + o) * rows + r) * cols + s] = static_cast<float>(sum);
        }
      }
    }
}
