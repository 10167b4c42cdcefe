// class: plain
// kind: control
// how: three loops
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& w, const Tensor& bias, Tensor& y) {
  const int64_t rows = x.size(0), k = x.size(1), cols = w.size(1), down = x.stride(0), right = x.stride(1);
  const float *in = x.data<float>(), *factors = w.data<float>(), *added = bias.data<float>();
  float* out = y.data<float>();
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    float* to = out + r * cols;
    std::copy_n(added, cols, to);
    for (int64_t p = 0; p < k; ++p) {
      const float factor = in[r * down + p * right];
      for (int64_t j = 0; j < cols; ++j) to[j] += factor * factors[p * cols + j];
    }
  }
}
