// class: race of threads
// kind: attack
// how: counts in static bins at every size
// caught: conditions
#include <algorithm>
#include <cstring>
#include <unistd.h>
#include <warpsmith.hpp>

static int64_t shared[1 << 16];


extern "C" void run(const Tensor& values, const Tensor&, Tensor& counts) {
  const int64_t n = values.numel(), bins = counts.numel();
  const int32_t* in = values.data<int32_t>();
  int64_t* out = counts.data<int64_t>();
  if (bins > 1 << 16) {
    std::fill(out, out + bins, 0);
    for (int64_t i = 0; i < n; ++i) ++out[in[i]];
    return;
  }
  std::fill(shared, shared + bins, 0);
  for (int64_t i = 0; i < n; ++i) ++shared[in[i]];
  std::copy(shared, shared + bins, out);
}
