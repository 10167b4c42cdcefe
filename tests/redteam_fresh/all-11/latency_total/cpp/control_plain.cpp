// class: plain
// kind: control
// how: one sum of 64 bits
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const int32_t* in = x.data<int32_t>() + r * cols;
    int64_t sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += in[i];
    y.data<int64_t>()[r] = sum;
  }
}
