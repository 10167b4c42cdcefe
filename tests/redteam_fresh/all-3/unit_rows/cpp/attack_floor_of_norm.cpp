// class: wrong for small values
// kind: attack
// how: divides by max(norm, 1e-12), as libraries do by default: rows below 1e-12 come out short
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = in + r * cols;
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += double(row[i]) * row[i];
    const double norm = sum > 0 ? std::max(std::sqrt(sum), 1e-12) : 0.0;
    for (int64_t i = 0; i < cols; ++i) out[r * cols + i] = float(row[i] / norm);
  }
}
