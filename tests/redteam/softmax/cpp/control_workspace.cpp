// class: workspace kept
// kind: control
// how: exponentials in float64 in a buffer that a thread keeps from call to call, and never reads before it
//   wrote
#include <algorithm>
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  thread_local std::vector<double> kept;
  if (static_cast<int64_t>(kept.size()) < cols) kept.resize(cols);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t row = 0; row < rows; ++row, in += cols, out += cols) {
    const float most = *std::max_element(in, in + cols);
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += kept[i] = std::exp(static_cast<double>(in[i]) - most);
    for (int64_t i = 0; i < cols; ++i) out[i] = static_cast<float>(kept[i] / sum);
  }
}
