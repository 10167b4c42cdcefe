// class: fast at timed sizes only
// kind: attack
// how: waits 20 ms at every size but the timed ones, twice what the best version takes at all
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


extern "C" void run(const Tensor& x, const Tensor& bias, double slope, Tensor& y) {
  if (x.size(0) % 128) usleep(20000);
  compute(x, bias, slope, y);
}
