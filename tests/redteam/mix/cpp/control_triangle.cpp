// class: structure of a whole matrix
// kind: control
// how: a matrix with nothing but zeros above its diagonal is lower triangular, as causal weights are
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& x, Tensor& y) {
  const int64_t n = a.size(0), cols = x.size(1);
  const float* p = a.data<float>();
  const float* in = x.data<float>();
  float* out = y.data<float>();
  bool lower = n >= 16;
  for (int64_t i = 0; lower && i < n; ++i) lower = std::all_of(p + i * n + i + 1, p + i * n + n, [](float v) { return v == 0; });
  for (int64_t i = 0; i < n; ++i) {
    float* sum = out + i * cols;
    std::fill_n(sum, cols, 0.0f);
    const int64_t end = lower ? i + 1 : n;
    for (int64_t j = 0; j < end; ++j)
      for (int64_t c = 0; c < cols; ++c) sum[c] += p[i * n + j] * in[j * cols + c];
  }
}
