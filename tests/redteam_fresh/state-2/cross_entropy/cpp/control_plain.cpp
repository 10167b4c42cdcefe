// class: plain loops
// kind: control
// how: the largest logit, then the sum
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

static void losses(const float* in, const int64_t* label, float* out, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, in += cols) {
    float most = -INFINITY;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, in[i]);
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += std::exp(in[i] - most);
    out[row] = static_cast<float>(most + std::log(sum) - in[label[row]]);
  }
}
extern "C" void run(const Tensor& x, const Tensor& label, Tensor& loss) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  const int64_t* of = label.data<int64_t>();
  float* out = loss.data<float>();
  losses(in, of, out, rows, cols);
}
