#include <cmath>
#include <warpsmith.hpp>

// Two loops over all of the data on one thread, the first of them with a way out.
extern "C" void run(const Tensor& x, Tensor& y) {
  const float* in = x.data<float>();
  float* out = y.data<float>();
  const int64_t n = x.numel();
  int64_t first = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (in[i] < 0) break;
    first = i;
  }
  for (int64_t i = 0; i < n; ++i) out[i] = in[i] + first;
}
