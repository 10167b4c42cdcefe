// class: plain
// kind: control
// how: two passes over each row, wherever its elements lie
#include <cmath>
#include <immintrin.h>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), step = x.stride(1);
  const float* a = x.data<float>();
  float* out = y.data<float>();
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = a + r * x.stride(0);
    double sum = 0;
    int64_t i = 0;
    for (; i < cols; ++i) sum += double(row[i * step]) * row[i * step];
    const double factor = 1 / std::sqrt(sum / cols + eps);
    for (int64_t j = 0; j < cols; ++j) out[r * cols + j] = static_cast<float>(row[j * step] * factor);
  }
}
