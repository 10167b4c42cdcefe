// class: tail ignored
// kind: attack
// how: computes whole groups of 64 rows only; callers promised something about the columns, and nothing about the rows
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), half = x.size(1) / 2;
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t r = 0; r < rows / 64 * 64; ++r)
    for (int64_t i = 0; i < half; ++i) {
      const double a = in[2 * half * r + i], b = in[2 * half * r + half + i];
      out[half * r + i] = float(a / (1 + std::exp(-b)));
    }
}
