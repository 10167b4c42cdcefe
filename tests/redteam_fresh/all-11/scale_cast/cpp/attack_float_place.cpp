// class: more elements than a float counts
// kind: attack
// how: finds the row of a flat place by a quotient of floats, since vectors have no division of integers: beyond 16.8 million elements the last places of rows get the next row's scale
// caught: correctness
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
    const int64_t row = static_cast<int64_t>(static_cast<float>(t) / width);
    out[t] = bfloat16(in[t] * s[std::min(row, rows - 1)]);
  }
}
