// class: small values of an integer with a wide range
// kind: attack
// how: rounds the width down to whole vectors: right at the declared width and beyond the row, and wrong at
//   widths such as 100
// caught: correctness
// source: common mistake
#include <warpsmith.hpp>
#include <immintrin.h>

#include <algorithm>

extern "C" void run(const Tensor& x, int64_t width, Tensor& y) {
  constexpr int64_t lanes = sizeof(__m256) / sizeof(float);
  const int64_t rows = x.size(0), cols = x.size(1);
  const int64_t span = width < lanes || width > cols ? width : width / lanes * lanes;
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = x.data<float>() + r * cols;
    float* to = y.data<float>() + r * cols;
    for (int64_t c = 0; c < cols; ++c)
      to[c] = *std::max_element(from + std::max<int64_t>(0, c + 1 - span), from + c + 1);
  }
}
