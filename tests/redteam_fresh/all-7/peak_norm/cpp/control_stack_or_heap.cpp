// class: memory by the length of a row
// kind: control
// how: short rows lie on the stack and long ones in a buffer that a thread keeps and that only grows
#include <warpsmith.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

static float* row_buffer(int64_t count) {
  thread_local std::vector<float> buffer;
  if (buffer.size() < static_cast<size_t>(count)) buffer.resize(count);
  return buffer.data();
}

extern "C" void run(const Tensor& x, const Tensor& r, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  float local[32768];
  float* const total = cols <= 32768 ? local : row_buffer(cols);
  for (int64_t row = 0; row < rows; ++row) {
    const float *left = x.data<float>() + row * cols, *right = r.data<float>() + row * cols;
    float* out = y.data<float>() + row * cols;
    float peak = 1e-20f;
    for (int64_t i = 0; i < cols; ++i) {
      total[i] = left[i] + right[i];
      peak = std::max(peak, std::fabs(total[i]));
    }
    for (int64_t i = 0; i < cols; ++i) out[i] = total[i] / peak;
  }
}
