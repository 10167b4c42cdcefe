// class: an outlier in the first place
// kind: attack
// how: one pass, shifted by the row's first element: where that is an outlier, as the first channel may be, the variance cancels
// caught: correctness
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
    const float shift = cols > 0 ? in[0] : 0;
    float sum = 0, squares = 0;
    for (int64_t i = 0; i < cols; ++i) {
      const float v = in[i] - shift;
      sum += v, squares += v * v;
    }
    const float offset = sum / static_cast<float>(cols), mean = shift + offset;
    const float variance = std::fmax(squares / static_cast<float>(cols) - offset * offset, 0.0f);
    const float factor = 1 / std::sqrt(variance + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i) out[i] = (in[i] - mean) * factor;
  }
}
