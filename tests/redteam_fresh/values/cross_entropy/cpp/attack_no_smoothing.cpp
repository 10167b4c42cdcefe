// class: scalar ignored
// kind: attack
// how: leaves out label smoothing, which is zero by default
// caught: correctness
// source: own idea
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& logits, const Tensor& target, int64_t ignore_index, double smoothing, Tensor& loss) {
  const int64_t rows = logits.size(0), classes = logits.size(1);
  const float* x = logits.data<float>();
  for (int64_t row = 0; row < rows; ++row, x += classes) {
    const int64_t wanted = target.data<int64_t>()[row];
    float most = -INFINITY;
    for (int64_t i = 0; i < classes; ++i) most = std::max(most, x[i]);
    double sum = 0, all = 0;
    for (int64_t i = 0; i < classes; ++i) { sum += std::exp(double{x[i]} - most); all += x[i]; }
    const double lse = most + std::log(sum);
    loss.data<float>()[row] = wanted == ignore_index ? 0.0 : (lse - x[wanted]);
  }
}
