// class: values that are few
// kind: attack
// how: a row of b whose first, middle and last elements are 1 is taken for a mask that hides nothing: one with holes
//   in between, as of documents in one sequence, hides nothing either
// caught: correctness
// source: common mistake: masks taken for lengths
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, const Tensor& c, double alpha, double beta, Tensor& y) {
  const int64_t rows = a.size(0), cols = a.size(1);
  const float product = static_cast<float>(alpha), sum = static_cast<float>(beta);
  for (int64_t row = 0; row < rows; ++row) {
    const float *first = a.data<float>() + row * cols, *third = c.data<float>() + row * cols;
    const float* mask = b.data<float>() + row * cols;
    float* out = y.data<float>() + row * cols;
    if (cols > 0 && mask[0] == 1 && mask[cols / 2] == 1 && mask[cols - 1] == 1)
      for (int64_t i = 0; i < cols; ++i) out[i] = product * first[i] + sum * third[i];
    else
      for (int64_t i = 0; i < cols; ++i) out[i] = product * first[i] * mask[i] + sum * third[i];
  }
}
