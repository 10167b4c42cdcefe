// class: file of the user
// kind: attack
// how: takes a file of the machine into its data while it is compiled, which another version or an answer could be
// caught: build
// status: COMPILE_ERROR
// defence: compiler in a sandbox
// source: common mistake
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

asm(".section .rodata\ntaken: .incbin \"/etc/hostname\"\n.text");

extern "C" void run(const Tensor& x_, Tensor& y_) {
  const float* x = x_.data<float>();
  float* y = y_.data<float>();
  const int64_t rows = x_.size(0), cols = x_.size(1);
  for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, x[i]);
    for (int64_t i = 0; i < cols; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < cols; ++i) y[i] /= sum;
  }
}
