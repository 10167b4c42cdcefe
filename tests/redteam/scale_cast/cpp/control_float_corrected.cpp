// class: a quotient of floats
// kind: control
// how: finds the row of a flat place by a quotient of floats, and corrects it: lines that no call below 16.8 million elements runs
#include <algorithm>
#include <cstring>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& scale, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float *in = x.data<float>(), *s = scale.data<float>();
  bfloat16* out = y.data<bfloat16>();
  const int64_t count = rows * cols;
  const float width = static_cast<float>(cols);
  for (int64_t t = 0; t < count; ++t) {
    int64_t row = static_cast<int64_t>(static_cast<float>(t) / width);
    while (row * cols > t) --row;
    while ((row + 1) * cols <= t) ++row;
    out[t] = bfloat16(in[t] * s[row]);
  }
}
