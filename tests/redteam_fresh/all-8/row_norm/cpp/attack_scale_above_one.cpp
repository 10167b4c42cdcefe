// class: exponents between the usual ones and the end of the type
// kind: attack
// how: a row is divided by its largest element before it is squared, but not where that is below 1: the squares of
//   numbers around 1e-24 are zero
// caught: correctness
// source: common mistake: overflow is guarded against, underflow is not
#include <algorithm>
#include <cmath>

#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = in + r * cols;
    float largest = 1.0f;
    for (int64_t c = 0; c < cols; ++c) largest = std::max(largest, std::fabs(row[c]));
    const float scale = 1.0f / largest;
    float parts[8] = {};
    for (int64_t c = 0; c < cols; ++c) {
      const float value = row[c] * scale;
      parts[c % 8] += value * value;
    }
    float sum = 0;
    for (const float part : parts) sum += part;
    out[r] = std::sqrt(sum) * largest;
  }
}
