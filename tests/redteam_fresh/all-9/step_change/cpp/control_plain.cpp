// class: plain
// kind: control
// how: element by element
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& y) {
  const int64_t rows = a.size(0), cols = a.size(1);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < cols; ++i)
      y.data<float>()[r * cols + i] = std::fabs(a.data<float>()[r * a.stride(0) + i * a.stride(1)] -
                                                b.data<float>()[r * b.stride(0) + i * b.stride(1)]);
}
