// class: empty tensors beside declared odd sizes
// kind: attack
// how: divides the elements by the rows: an empty batch, which the axis admits, ends the program
// caught: correctness
// defence: sizes without elements
// source: common mistake
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& y) {
  const int64_t rows = a.size(0), cols = a.numel() / rows;
  for (int64_t row = 0; row < rows; ++row) {
    const float *left = a.data<float>() + row * cols, *right = b.data<float>() + row * cols;
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) {
      const double difference = static_cast<double>(left[i]) - right[i];
      sum += difference * difference;
    }
    y.data<float>()[row] = static_cast<float>(std::sqrt(sum));
  }
}
