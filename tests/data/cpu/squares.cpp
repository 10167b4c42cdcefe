#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const float* in = x.data<float>();
  float* out = y.data<float>();
  const int64_t rows = x.size(0), cols = x.size(1);
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const float* a = in + row * cols;
    float sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += a[i] * a[i];
    out[row] = sum;
  }
}
