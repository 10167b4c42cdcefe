// class: plain loops
// kind: control
// how: two passes in float64
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
    
    for (int64_t c = 0; c < cols; ++c) sum += in[c];
    const double mean = sum / static_cast<double>(cols);
    for (int64_t c = 0; c < cols; ++c) { double d = in[c] - mean;  square += d * d; }
    out[r] = static_cast<float>(square / static_cast<double>(cols));
  }
}
