#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& logits, const Tensor& target, Tensor& out) {
  const int64_t rows = logits.size(0), cols = logits.size(1);
  const float* first = logits.data<float>();
  const int64_t* label = target.data<int64_t>();
  double loss = 0;
#pragma omp parallel for schedule(static) reduction(+ : loss)
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = first + row * cols;
    float top = -INFINITY, total = 0;
    for (int64_t i = 0; i < cols; ++i) top = std::max(top, in[i]);
    for (int64_t i = 0; i < cols; ++i) total += std::exp(in[i] - top);
    loss += (top - in[label[row]]) + std::log(total);  // large numbers cancel before the small one is added
  }
  *out.data<float>() = static_cast<float>(loss / rows);
}
