// class: plain
// kind: control
// how: three loops
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& x, Tensor& y) {
  const int64_t n = a.size(0), cols = x.size(1);
  const float* p = a.data<float>();
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t i = 0; i < n; ++i) {
    float* sum = out + i * cols;
    std::fill_n(sum, cols, 0.0f);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t c = 0; c < cols; ++c) sum[c] += p[i * n + j] * in[j * cols + c];
  }
}
