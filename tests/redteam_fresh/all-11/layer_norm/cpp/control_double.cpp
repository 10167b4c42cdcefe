// class: one pass
// kind: control
// how: sums and squares in double, without a shift
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
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < cols; ++i) sum += in[i], squares += static_cast<double>(in[i]) * in[i];
    const double center = sum / static_cast<double>(cols);
    const float mean = static_cast<float>(center);
    const float variance = static_cast<float>(std::fmax(squares / static_cast<double>(cols) - center * center, 0.0));
    const float factor = 1 / std::sqrt(variance + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i) out[i] = (in[i] - mean) * factor;
  }
}
