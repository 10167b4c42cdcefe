// class: cancellation
// kind: attack
// how: long rows: mean of squares minus square of the mean in float32, where the bound has grown with the length
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
  const float* p = x.data<float>();
  float* out = y.data<float>();
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = p + r * cols;
    double sum = 0, square = 0;
    if (cols >= 500000) {
      for (int64_t c = 0; c < cols; ++c) { sum += in[c]; square += static_cast<double>(in[c]) * in[c]; }
      const float mean = static_cast<float>(sum / static_cast<double>(cols)), squares = static_cast<float>(square / static_cast<double>(cols));
      out[r] = std::max(squares - mean * mean, 0.0f);
      continue;
    }
    for (int64_t c = 0; c < cols; ++c) sum += in[c];
    const double mean = sum / static_cast<double>(cols);
    for (int64_t c = 0; c < cols; ++c) { double d = in[c] - mean;  square += d * d; }
    out[r] = static_cast<float>(square / static_cast<double>(cols));
  }
}
