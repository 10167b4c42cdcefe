// class: parallel rows
// kind: control
// how: rows over all cores; each is computed by one thread
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* from = x.data<float>();
  float* to = y.data<float>();
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = from + row * cols;
    float* out = to + row * cols;
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, in[i]);
    for (int64_t i = 0; i < cols; ++i) sum += out[i] = std::exp(in[i] - most);
    for (int64_t i = 0; i < cols; ++i) out[i] *= 1 / sum;
  }
}
