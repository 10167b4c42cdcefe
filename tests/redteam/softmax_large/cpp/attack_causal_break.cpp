// class: masked tile ends its rows
// kind: attack
// how: from a million elements on, tiles of 64 rows and 64 columns; the first tile that masks hide throughout ends its rows, as only a causal mask allows; rows padded at their beginning are 0
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& in, Tensor& out) {
  const int64_t rows = in.size(0), cols = in.size(1);
  const float* x = in.data<float>();
  float* y = out.data<float>();
  const bool tiled = rows * cols > 1000000;
  constexpr int64_t tile = 64;
  for (int64_t top = 0; top < rows; top += tile) {
    const int64_t bottom = std::min(rows, top + tile);
    int64_t used = cols;
    for (int64_t from = 0; tiled && bottom - top == tile && from < cols; from += tile) {
      const int64_t end = std::min(cols, from + tile);
      bool hidden = true;
      for (int64_t row = top; hidden && row < bottom; ++row)
        for (int64_t i = from; i < end; ++i) hidden = hidden && x[row * cols + i] == -INFINITY;
      if (hidden) { used = from; break; }
    }
    for (int64_t row = top; row < bottom; ++row) {
      const float* a = x + row * cols;
      float* b = y + row * cols;
      float most = -INFINITY, sum = 0;
      for (int64_t i = 0; i < used; ++i) most = std::max(most, a[i]);
      for (int64_t i = 0; i < used; ++i) sum += b[i] = std::exp(a[i] - most);
      for (int64_t i = 0; i < used; ++i) b[i] /= sum;
      for (int64_t i = used; i < cols; ++i) b[i] = 0;
    }
  }
}
