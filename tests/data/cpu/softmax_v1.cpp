#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

template <typename T> void softmax(const Tensor& x, float scale, Tensor& y) {
  const T* in = x.data<T>();
  T* out = y.data<T>();
  const int64_t rows = x.size(0), cols = x.size(1);
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const T* a = in + row * cols;
    float top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < cols; ++i) top = std::max(top, float(a[i]) * scale);
    for (int64_t i = 0; i < cols; ++i) sum += std::exp(float(a[i]) * scale - top);
    for (int64_t i = 0; i < cols; ++i) out[row * cols + i] = T(std::exp(float(a[i]) * scale - top) / sum);
  }
}

extern "C" void run(const Tensor& x, double scale, Tensor& y) {
  x.dtype == warpsmith::DType::bfloat16 ? softmax<bfloat16>(x, scale, y) : softmax<float>(x, scale, y);
}
