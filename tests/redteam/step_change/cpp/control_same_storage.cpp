// class: two inputs that overlap
// kind: control
// how: where b begins where a does, with the same strides, the change is a's difference from itself, and otherwise that of each pair
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& y) {
  const int64_t rows = a.size(0), cols = a.size(1);
  const bool same = a.address == b.address && a.stride(0) == b.stride(0) && a.stride(1) == b.stride(1);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < cols; ++i) {
      const float left = a.data<float>()[row * a.stride(0) + i * a.stride(1)];
      const float right = same ? left : b.data<float>()[row * b.stride(0) + i * b.stride(1)];
      y.data<float>()[row * cols + i] = std::fabs(left - right);
    }
}
