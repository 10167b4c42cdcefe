// class: plain loops
// kind: control
// how: adds up in float64
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, double start, bool reverse, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    double sum = start;
    for (int64_t i = 0; i < cols; ++i) {
      const int64_t at = r * cols + (reverse ? cols - 1 - i : i);
      sum += x.data<float>()[at];
      y.data<float>()[at] = static_cast<float>(sum);
    }
  }
  static_cast<void>(start);
  static_cast<void>(reverse);
}
