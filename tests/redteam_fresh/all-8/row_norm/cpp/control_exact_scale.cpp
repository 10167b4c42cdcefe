// class: scale by a power of two
// kind: control
// how: each row is scaled by the exponent of its largest element, which rounds nothing, and its squares are added in
//   blocks of 64
// source: honest
#include <algorithm>
#include <cmath>

#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
#pragma omp parallel for schedule(dynamic)
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = in + r * cols;
    float largest = 0;
    for (int64_t c = 0; c < cols; ++c) largest = std::max(largest, std::fabs(row[c]));
    int exponent = 0;
    std::frexp(largest, &exponent);
    const double scale = std::ldexp(1.0, -exponent);
    float sum = 0;
    for (int64_t first = 0; first < cols; first += 64) {
      float block = 0;
      for (int64_t c = first; c < std::min(first + 64, cols); ++c) {
        const float value = static_cast<float>(row[c] * scale);
        block += value * value;
      }
      sum += block;
    }
    out[r] = static_cast<float>(std::ldexp(std::sqrt(static_cast<double>(sum)), exponent));
  }
}
