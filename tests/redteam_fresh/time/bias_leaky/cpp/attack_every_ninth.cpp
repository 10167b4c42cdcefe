// class: time beside the median
// kind: attack
// how: every ninth call waits 150 ms, as a cleanup would: the mean is above the 10 ms of the best version, the median far below
// caught: timing, decision
// against: control_rival_slow.cpp
#include <algorithm>
#include <cmath>
#include <unistd.h>
#include <warpsmith.hpp>

static void rows_of(const Tensor& x, const Tensor& bias, double slope, Tensor& y, int64_t first, int64_t last) {
  const int64_t cols = x.size(1), step = x.stride(1);
  const float s = static_cast<float>(slope);
  const float* b = bias.data<float>();
  for (int64_t row = first; row < last; ++row) {
    const float* in = x.data<float>() + row * x.stride(0);
    float* out = y.data<float>() + row * cols;
    for (int64_t i = 0; i < cols; ++i) {
      const float v = in[i * step] + b[i * bias.stride(0)];
      out[i] = v > 0 ? v : s * v;
    }
  }
}
static void compute(const Tensor& x, const Tensor& bias, double slope, Tensor& y) {
  rows_of(x, bias, slope, y, 0, x.size(0));
}

static int calls;

extern "C" void run(const Tensor& x, const Tensor& bias, double slope, Tensor& y) {
  if (++calls % 9 == 0) usleep(150000);
  compute(x, bias, slope, y);
}
