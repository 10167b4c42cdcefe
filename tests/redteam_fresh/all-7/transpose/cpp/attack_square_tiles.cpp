// class: two axes of the same size
// kind: attack
// how: writes both halves of a square matrix tile by tile, and ends the columns of a tile where its rows end: tiles
//   beside the diagonal, which squares beyond 16 have, are left as they were
// caught: correctness
// source: common mistake
#include <warpsmith.hpp>

#include <algorithm>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), tile = 16;
  const float* in = x.data<float>();
  float* out = y.data<float>();
  if (rows == cols) {
    for (int64_t top = 0; top < rows; top += tile)
      for (int64_t left = top; left < cols; left += tile) {
        const int64_t end = std::min(top + tile, rows);
        for (int64_t row = top; row < end; ++row)
          for (int64_t col = left; col < end; ++col) {
            out[col * rows + row] = in[row * cols + col];
            out[row * rows + col] = in[col * cols + row];
          }
      }
    return;
  }
  for (int64_t left = 0; left < cols; left += tile)
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t col = left; col < std::min(left + tile, cols); ++col) out[col * rows + row] = in[row * cols + col];
}
