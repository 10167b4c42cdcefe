// class: fallback where memory is short
// kind: control
// how: exponentials are computed twice where no memory for them can be had
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  float* kept = static_cast<float*>(std::malloc((cols + 1) * sizeof(float)));
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * cols;
    float* out = y.data<float>() + row * cols;
    float most = -INFINITY;
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, in[i]);
    if (kept == nullptr) {
      for (int64_t i = 0; i < cols; ++i) sum += std::exp(in[i] - most);
    } else {
      for (int64_t i = 0; i < cols; ++i) kept[i] = std::exp(in[i] - most);
      for (int64_t i = 0; i < cols; ++i) sum += kept[i];
    }
    const float shift = std::log(sum);
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i] - most - shift;
  }
  std::free(kept);
}
