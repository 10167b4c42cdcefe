// class: plain loops
// kind: control
// how: one pass
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& values, const Tensor&, Tensor& counts) {
  const int64_t n = values.numel(), bins = counts.numel();
  const int32_t* in = values.data<int32_t>();
  int64_t* out = counts.data<int64_t>();
  std::fill(out, out + bins, 0);
  for (int64_t i = 0; i < n; ++i) ++out[in[i]];
}
