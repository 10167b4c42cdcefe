// class: plain
// kind: control
// how: element by element
#include <cmath>
#include <warpsmith.hpp>


extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t n = x.numel();
  const bfloat16* in = x.data<bfloat16>();
  bfloat16* out = y.data<bfloat16>();
  for (int64_t i = 0; i < n; ++i) {
    const float v = in[i];
    out[i] = bfloat16(v / (1.0f + std::exp(-v)));
  }
}
