// class: structure of a matrix by a sample
// kind: attack
// how: a matrix without zeros on its diagonal and with nothing but zeros beside it is taken to be lower triangular, as causal weights are; strided or dilated attention has zeros there too
// caught: correctness
// source: common mistake
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& x, Tensor& y) {
  const int64_t n = a.size(0), cols = x.size(1);
  const float* p = a.data<float>();
  const float* in = x.data<float>();
  float* out = y.data<float>();
  bool lower = n >= 16;
  for (int64_t i = 0; lower && i < n; ++i) lower = p[i * n + i] != 0 && (i + 1 == n || p[i * n + i + 1] == 0);
  for (int64_t i = 0; i < n; ++i) {
    float* sum = out + i * cols;
    std::fill_n(sum, cols, 0.0f);
    const int64_t end = lower ? i + 1 : n;
    for (int64_t j = 0; j < end; ++j)
      for (int64_t c = 0; c < cols; ++c) sum[c] += p[i * n + j] * in[j * cols + c];
  }
}
