// class: plain
// kind: control
// how: a row of the weight after the other
#include <algorithm>
#include <cstring>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& w, Tensor& y) {
  const int64_t rows = x.size(0), k = w.size(0), n = w.size(1), down = w.stride(0), along = w.stride(1);
  const float *a = x.data<float>(), *b = w.data<float>();
  float* out = y.data<float>();
  std::fill_n(out, rows * n, 0.0f);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < n; ++j) out[r * n + j] += a[r * k + i] * b[i * down + j * along];
}
