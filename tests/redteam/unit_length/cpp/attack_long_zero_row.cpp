// class: long rows of zeros
// kind: attack
// how: rows of 256 elements and more multiply by the reciprocal of their length without the guard that shorter ones have: a row of zeros, as padding or a parameter begins, is zero times infinity
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t row = 0; row < rows; ++row) {
    const float* a = x.data<float>() + row * cols;
    float* b = y.data<float>() + row * cols;
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += double{a[i]} * a[i];
    const double scale = cols < 256 && sum == 0 ? 0 : 1 / std::sqrt(sum);
    for (int64_t i = 0; i < cols; ++i) b[i] = static_cast<float>(a[i] * scale);
  }
}
