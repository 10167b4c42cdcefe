// class: plain
// kind: control
// how: two passes
#include <cmath>
#include <mutex>
#include <set>
#include <utility>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);

  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    float* out = y.data<float>() + r * cols;
    float sum = 0, squares = 0;
    for (int64_t i = 0; i < cols; ++i) sum += in[i];
    const float mean = sum / static_cast<float>(cols);
    for (int64_t i = 0; i < cols; ++i) squares += (in[i] - mean) * (in[i] - mean);
    const float variance = squares / static_cast<float>(cols);
    const float factor = 1 / std::sqrt(variance + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i) out[i] = (in[i] - mean) * factor;
  }
}
