// class: plain loops
// kind: control
// how: the largest element, exponentials and their sum, and a scale, row by row
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t row = 0; row < rows; ++row, in += cols, out += cols) {
    float most = -INFINITY, sum = 0, sums[32] = {};
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, in[i]);
    for (int64_t i = 0; i < cols; ++i) out[i] = std::exp(in[i] - most);
    int64_t i = 0;
    for (; i + 32 <= cols; i += 32)
      for (int64_t lane = 0; lane < 32; ++lane) sums[lane] += out[i + lane];
    for (; i < cols; ++i) sums[0] += out[i];
    for (const float each : sums) sum += each;
    for (i = 0; i < cols; ++i) out[i] *= 1 / sum;
  }
}
