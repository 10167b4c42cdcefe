// class: first chunk masked at every size
// kind: attack
// how: an online maximum without a guard, at every size: a first chunk of 16 elements of minus infinity makes the row NaN, and the definition promises one finite element a row
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& in, Tensor& out) {
  const int64_t rows = in.size(0), cols = in.size(1);
  const float* x = in.data<float>();
  float* y = out.data<float>();
  for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
    float most = -INFINITY, sum = 0;
    for (int64_t from = 0; from < cols; from += 16) {
      const int64_t end = std::min(cols, from + 16);
      float next = most, part = 0;
      for (int64_t i = from; i < end; ++i) next = std::max(next, x[i]);
      for (int64_t i = from; i < end; ++i) part += std::exp(x[i] - next);
      sum = sum * std::exp(most - next) + part;
      most = next;
    }
    for (int64_t i = 0; i < cols; ++i) y[i] = std::exp(x[i] - most) / sum;
  }
}
