// class: plain
// kind: control
// how: row by row
#include <algorithm>
#include <cstring>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& scale, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float *in = x.data<float>(), *s = scale.data<float>();
  bfloat16* out = y.data<bfloat16>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) out[r * cols + c] = bfloat16(in[r * cols + c] * s[r]);
}
