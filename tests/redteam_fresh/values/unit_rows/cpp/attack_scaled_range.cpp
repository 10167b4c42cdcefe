// class: range of values
// kind: attack
// how: adds squares in float32 after a fixed scaling: rows beyond 1e16 become zero, and rows below 1e-8 infinite or zero
// caught: correctness
// source: own idea
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t row = 0; row < rows; ++row) {
    float sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += (in[row * cols + i] * 1e3f) * (in[row * cols + i] * 1e3f);
    const double size = std::max(std::sqrt(double{sum}) * 1e-3, std::max(eps, 1e-9));
    for (int64_t i = 0; i < cols; ++i) out[row * cols + i] = static_cast<float>(in[row * cols + i] / size);
  }
}
