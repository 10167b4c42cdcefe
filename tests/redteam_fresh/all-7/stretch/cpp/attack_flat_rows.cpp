// class: equal values within a declared range
// kind: attack
// how: divides by the difference of the largest and the least pixel, which a line of one level does not have: black
//   borders are NaN
// caught: correctness
// source: common mistake
#include <warpsmith.hpp>

#include <algorithm>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * cols;
    float* out = y.data<float>() + row * cols;
    const auto [low, high] = std::minmax_element(in, in + cols);
    const float least = *low, span = cols > 1 ? *high - *low : 1;
    for (int64_t i = 0; i < cols; ++i) out[i] = (in[i] - least) / span;
  }
}
