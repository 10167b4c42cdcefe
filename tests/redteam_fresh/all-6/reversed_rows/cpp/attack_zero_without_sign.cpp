// class: sign of zero
// kind: attack
// how: adds zero to what it moves: a negative zero loses its sign, and numbers that carry bits, as packed
//   masks do, change
// caught: correctness
#include <warpsmith.hpp>
extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), along = x.stride(1);
  const float* from = x.data<float>();
  float* to = y.data<float>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) to[r * cols + cols - 1 - c] = from[r * down + c * along] + 0.0f;
}
