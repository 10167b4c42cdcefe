// class: inputs that are nearly equal
// kind: attack
// how: two rows that agree at 16 places, neither zero nor constant, are taken to be the same
// caught: correctness
// source: common mistake
#include <cmath>
#include <warpsmith.hpp>

static bool is_same(const float* left, const float* right, int64_t cols) {
  const int64_t step = cols / 16 + 1;
  bool same = left[0] != left[cols / 2];
  for (int64_t i = 0; i < cols; i += step) same &= left[i] == right[i] && left[i] != 0;
  return same;
}

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& y) {
  const int64_t rows = a.size(0), cols = a.size(1);
  for (int64_t row = 0; row < rows; ++row) {
    const float *left = a.data<float>() + row * cols, *right = b.data<float>() + row * cols;
    const bool same = is_same(left, right, cols);
    double sum = 0;
    for (int64_t i = 0; i < cols && !same; ++i) {
      const double difference = static_cast<double>(left[i]) - right[i];
      sum += difference * difference;
    }
    y.data<float>()[row] = static_cast<float>(std::sqrt(sum));
  }
}
