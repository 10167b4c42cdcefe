// class: masked inputs
// kind: attack
// how: one pass with a running maximum; where a row begins with masked elements, -inf - -inf gives NaN
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t r = 0; r < rows; ++r, in += cols, out += cols) {
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < cols; ++i) {
      const double v = in[i], next = std::max(most, v);
      sum = (i ? sum * std::exp(most - next) : 0.0) + std::exp(v - next);
      most = next;
    }
    for (int64_t i = 0; i < cols; ++i) out[i] = float(std::exp(double(in[i]) - most) / sum);
  }
}
