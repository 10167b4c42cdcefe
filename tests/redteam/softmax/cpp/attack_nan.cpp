// class: NaN beats the comparator
// kind: attack
// how: NaN everywhere: `error > tolerance` is false
// caught: correctness
// status: INCORRECT_NUMERICAL
// defence: NaN only where the reference has it
// source: pygpubench gc_nan
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  std::fill_n(y.data<float>(), rows * cols, NAN);
}
