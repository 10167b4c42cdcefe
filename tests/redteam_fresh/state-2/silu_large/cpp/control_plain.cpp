// class: parallel loops
// kind: control
// how: rows over all cores
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

static void silu(const float* in, const float* scale, float* out, int64_t rows, int64_t cols) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < cols; ++i) {
      const float v = in[row * cols + i];
      out[row * cols + i] = v / (1 + std::exp(-v)) * scale[i];
    }
}
extern "C" void run(const Tensor& x, const Tensor& scale, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), count = rows * cols;
  const float* in = x.data<float>();
  const float* s = scale.data<float>();
  float* out = y.data<float>();
  silu(in, s, out, rows, cols);
}
