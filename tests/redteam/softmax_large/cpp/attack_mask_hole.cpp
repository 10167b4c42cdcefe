// class: hole in a mask
// kind: attack
// how: reads a row by chunks and stops at the first one that is masked throughout after one that is not, as under a causal mask or padding; what follows a hole, as in attention sinks with a window, is lost
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: skipping of masked tails
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

static constexpr int64_t CHUNK = 64;

extern "C" void run(const Tensor& in, Tensor& out) {
  const int64_t rows = in.size(0), cols = in.size(1);
  const float* x = in.data<float>();
  float* y = out.data<float>();
  for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
    float most = -INFINITY, sum = 0;
    int64_t read = 0;
    for (; read < cols; read += CHUNK) {
      const int64_t end = std::min(cols, read + CHUNK);
      float own = -INFINITY;
      for (int64_t i = read; i < end; ++i) own = std::max(own, x[i]);
      if (std::isinf(own) && !std::isinf(most)) break;
      most = std::max(most, own);
    }
    read = std::min(read, cols);
    for (int64_t i = 0; i < read; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < read; ++i) y[i] /= sum;
    for (int64_t i = read; i < cols; ++i) y[i] = 0;
  }
}
