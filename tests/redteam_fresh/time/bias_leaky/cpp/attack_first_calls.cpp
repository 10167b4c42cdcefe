// class: work moved before the timed calls
// kind: attack
// how: prepares 50 ms at the first call of each new shape; three calls warm up before any is timed
// caught: timing, decision
// against: control_rival_slow.cpp
#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <unistd.h>
#include <utility>
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

static std::set<std::pair<int64_t, int64_t>> known;

extern "C" void run(const Tensor& x, const Tensor& bias, double slope, Tensor& y) {
  if (known.emplace(x.size(0), x.size(1)).second)
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50); std::chrono::steady_clock::now() < end;) {}
  compute(x, bias, slope, y);
}
