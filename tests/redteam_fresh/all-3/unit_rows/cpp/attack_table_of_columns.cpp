// class: hard-coded capacity
// kind: attack
// how: adds up at most 2048 columns, twice as many as the largest declared size has
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
    for (int64_t i = 0; i < std::min<int64_t>(cols, 2048); ++i) sum += double(row[i]) * row[i];
    const double norm = std::sqrt(sum);
    for (int64_t i = 0; i < cols; ++i) out[r * cols + i] = float(row[i] / norm);
  }
}
