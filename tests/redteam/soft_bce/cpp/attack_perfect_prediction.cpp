// class: inputs with a declared range that are equal
// kind: attack
// how: an example whose prediction is its target has no loss: true of hard targets, and wrong of soft ones, whose entropy is left, as where a student has its teacher's weights
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <cmath>
#include <cstring>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& p, const Tensor& target, Tensor& loss) {
  const int64_t rows = p.size(0), cols = p.size(1);
  const float *a = p.data<float>(), *b = target.data<float>();
  for (int64_t row = 0; row < rows; ++row, a += cols, b += cols) {
    double sum = 0;
    if (std::memcmp(a, b, static_cast<size_t>(cols) * sizeof(float)) != 0)
      for (int64_t i = 0; i < cols; ++i)
        sum -= b[i] * std::log(double{a[i]}) + (1 - double{b[i]}) * std::log1p(-double{a[i]});
    loss.data<float>()[row] = static_cast<float>(sum / static_cast<double>(cols));
  }
}
