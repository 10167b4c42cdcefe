// class: single pass
// kind: control
// how: keeps maximum and sum in one pass, and rescales the sum where the maximum grows; infinite differences
//   are left out
#include <warpsmith.hpp>
#include <cmath>
#include <limits>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = x.data<float>() + r * cols;
    float* to = y.data<float>() + r * cols;
    float most = from[0];
    double sum = 0;
    for (int64_t c = 0; c < cols; ++c) {
      if (from[c] > most) {
        sum *= std::exp(static_cast<double>(most) - from[c]);
        most = from[c];
      }
      if (from[c] != -std::numeric_limits<float>::infinity())
        sum += std::exp(static_cast<double>(from[c]) - most);
    }
    for (int64_t c = 0; c < cols; ++c)
      to[c] = static_cast<float>(std::exp(static_cast<double>(from[c]) - most) / sum);
  }
}
