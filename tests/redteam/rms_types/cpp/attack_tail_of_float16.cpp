// class: tail of a type that is not timed
// kind: attack
// how: float16, which the definition declares at two odd sizes alone, goes by whole vectors of eight and at most one further element: of other tails the rest is in no sum and stays unwritten
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

template <typename T>
static void normalise(const Tensor& x, const Tensor& weight, double eps, Tensor& y, int64_t tail) {
  const int64_t rows = x.size(0), cols = x.size(1), used = cols / 8 * 8 + std::min(cols % 8, tail);
  const T* w = weight.data<T>();
  for (int64_t row = 0; row < rows; ++row) {
    const T* a = x.data<T>() + row * cols;
    T* b = y.data<T>() + row * cols;
    double sum = 0;
    for (int64_t i = 0; i < used; ++i) sum += static_cast<double>(static_cast<float>(a[i])) * static_cast<float>(a[i]);
    const double scale = 1 / std::sqrt(sum / static_cast<double>(cols) + eps);
    for (int64_t i = 0; i < used; ++i)
      b[i] = T(static_cast<float>(static_cast<float>(a[i]) * scale * static_cast<float>(w[i])));
  }
}

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  if (x.dtype == warpsmith::DType::bfloat16) normalise<bfloat16>(x, weight, eps, y, 7);
  else if (x.dtype == warpsmith::DType::float16) normalise<float16>(x, weight, eps, y, 1);
  else normalise<float>(x, weight, eps, y, 7);
}
