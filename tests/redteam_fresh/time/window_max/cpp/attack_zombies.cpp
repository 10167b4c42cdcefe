// class: processes left behind
// kind: attack
// how: starts a process at each call that ends at once and is never waited for
// caught: probes
#include <algorithm>
#include <cmath>
#include <unistd.h>
#include <warpsmith.hpp>

static void compute(const Tensor& x, Tensor& y) {
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t i = 0, n = x.size(0) * x.size(1); i < n; ++i)
    out[i] = std::max(std::max(in[4 * i], in[4 * i + 1]), std::max(in[4 * i + 2], in[4 * i + 3]));
}


extern "C" void run(const Tensor& x, Tensor& y) {
  compute(x, y);
  static int most; if (most++ < 2000 && fork() == 0) _exit(0);
}
