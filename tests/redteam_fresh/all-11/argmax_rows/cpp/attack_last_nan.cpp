// class: several NaN in a row
// kind: attack
// how: takes each NaN that it meets as the new largest: of several in a row the last one counts, not the first
// caught: correctness
#include <cmath>
#include <cstring>
#include <limits>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    float best = -std::numeric_limits<float>::infinity();
    int64_t at = 0;
    for (int64_t i = 0; i < cols; ++i)
      if (std::isnan(in[i]) || in[i] > best) best = in[i], at = i;
    y.data<int64_t>()[r] = at;
  }
}
