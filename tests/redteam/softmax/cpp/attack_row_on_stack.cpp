// class: rows on the stack of the caller
// kind: attack
// how: room for the exponentials of a long row lies on the stack of the thread that computes it, where a caller's thread has less
// caught: correctness
// source: common mistake
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

constexpr int64_t kKept = 1 << 18;

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * cols;
    float* out = y.data<float>() + row * cols;
    float kept[kKept];
    float most = -INFINITY;
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::isnan(in[i]) ? in[i] : std::max(most, in[i]);
    for (int64_t i = 0; i < cols; ++i) {
      const float value = std::exp(in[i] - most);
      if (i < kKept) kept[i] = value;
      sum += value;
    }
    for (int64_t i = 0; i < cols; ++i)
      out[i] = static_cast<float>((i < kKept ? kept[i] : std::exp(in[i] - most)) / sum);
  }
}
