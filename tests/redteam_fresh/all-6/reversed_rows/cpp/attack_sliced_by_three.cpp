// class: strides
// kind: attack
// how: shifts where it should multiply: steps between elements that are no power of two, as in x[:, ::3],
//   read other elements, but for a transposed tensor, whose rows are a step apart
// caught: correctness
#include <warpsmith.hpp>
extern "C" void run(const Tensor& x, Tensor& y) {
  int shift = 0;
  while (x.stride(1) >> shift > 1) ++shift;
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), along = x.stride(1);
  const float* from = x.data<float>();
  float* to = y.data<float>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      to[r * cols + cols - 1 - c] = from[r * down + (down == 1 ? c * along : c << shift)];
}
