// class: batch variance beyond the judged batches
// kind: attack
// how: multiplies by the reciprocal in batches of more than 256 rows and divides in smaller ones, so that a row's bits
//   depend on how many others there are
// caught: correctness
// source: common mistake: another kernel for large batches
#include <warpsmith.hpp>

#include <algorithm>
#include <cmath>

extern "C" void run(const Tensor& x, const Tensor& r, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const bool is_large = rows > 256;
  for (int64_t row = 0; row < rows; ++row) {
    const float *left = x.data<float>() + row * cols, *right = r.data<float>() + row * cols;
    float* out = y.data<float>() + row * cols;
    float peak = 1e-20f;
    for (int64_t i = 0; i < cols; ++i) {
      out[i] = left[i] + right[i];
      peak = std::max(peak, std::fabs(out[i]));
    }
    const float scale = 1 / peak;
    for (int64_t i = 0; i < cols; ++i) out[i] = is_large ? out[i] * scale : out[i] / peak;
  }
}
