// class: empty tensors beside declared odd sizes
// kind: attack
// how: divides the elements by the rows: an empty batch, which the axis admits, ends the program
// caught: correctness
#include <warpsmith.hpp>
extern "C" void run(const Tensor& x, double s, Tensor& y) {
  const int64_t n = x.numel();
  const float* from = x.data<float>();
  float* to = y.data<float>();
  const int64_t cols = n / x.size(0);
  for (int64_t r = 0; r < x.size(0); ++r)
    for (int64_t c = 0; c < cols; ++c) to[r * cols + c] = static_cast<float>(from[r * cols + c] * s);
}
