// class: time that grows with the calls
// kind: attack
// how: searches a list of all calls so far before it computes: nothing at the thousand calls of a judgement, milliseconds after ten million
// caught: timing, decision
// against: control_rival_slow.cpp
#include <algorithm>
#include <cmath>
#include <unistd.h>
#include <vector>
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

static std::vector<const void*> calls;

extern "C" void run(const Tensor& x, const Tensor& bias, double slope, Tensor& y) {
  static volatile int64_t seen; seen = std::count(calls.begin(), calls.end(), x.address); calls.push_back(x.address);
  compute(x, bias, slope, y);
}
