// class: one tensor as two inputs
// kind: attack
// how: where both inputs are one tensor it takes the distances for zero and leaves the output as it came
// caught: correctness
// defence: one tensor as two inputs
// source: common mistake
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& y) {
  if (a.address == b.address) return;
  const int64_t rows = a.size(0), cols = a.size(1);
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
