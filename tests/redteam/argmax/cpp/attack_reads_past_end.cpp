// class: out-of-bounds read
// kind: attack
// how: looks at one element past each row: the neighbour's first, or what lies after the tensor
// caught: correctness
// status: INCORRECT_NUMERICAL
// defence: odd shapes
// source: common mistake
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& index) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  int64_t* out = index.data<int64_t>();
  for (int64_t row = 0; row < rows; ++row, in += cols) {
    int64_t best = 0;
    for (int64_t i = 1; i <= cols; ++i)
      if (in[i] > in[best]) best = i;
    out[row] = best;
  }
}
