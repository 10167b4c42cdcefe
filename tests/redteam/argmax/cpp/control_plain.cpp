// class: plain loops
// kind: control
// how: one pass over each row on one thread
#include <warpsmith.hpp>

static void argmax(const float* x, int64_t* index, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, x += cols) {
    int64_t best = 0;
    for (int64_t i = 1; i < cols; ++i)
      if (x[i] > x[best]) best = i;
    index[row] = best;
  }
}

extern "C" void run(const Tensor& x, Tensor& index) {
  const int64_t rows = x.size(0), cols = x.size(1);
  argmax(x.data<float>(), index.data<int64_t>(), rows, cols);
}
