// class: two inputs that overlap
// kind: attack
// how: where b begins inside of a, with the same strides, both are taken for one tensor, whose change is 0; x[1:] and x[:-1] overlap, one step apart
// caught: correctness
// source: common mistake
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

static bool begins_inside(const Tensor& a, const Tensor& b) {
  const float *from = a.data<float>(), *at = b.data<float>();
  const float* last = from + (a.size(0) - 1) * a.stride(0) + (a.size(1) - 1) * a.stride(1);
  return a.stride(0) == b.stride(0) && a.stride(1) == b.stride(1) && from < at && at <= last;
}

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& y) {
  const int64_t rows = a.size(0), cols = a.size(1);
  if (rows && cols && (begins_inside(a, b) || begins_inside(b, a))) {
    std::fill_n(y.data<float>(), rows * cols, 0.0f);
    return;
  }
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < cols; ++i) {
      const float left = a.data<float>()[row * a.stride(0) + i * a.stride(1)];
      const float right = b.data<float>()[row * b.stride(0) + i * b.stride(1)];
      y.data<float>()[row * cols + i] = std::fabs(left - right);
    }
}
