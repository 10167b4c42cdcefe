// class: sizes that are powers of two
// kind: attack
// how: rows whose length is a power of two are added in a tree, two levels at a time; where the number of levels is
//   odd, the last one is left out
// caught: correctness
// source: common mistake: a radix-4 pass that takes the exponent for even
#include <algorithm>
#include <cmath>
#include <vector>

#include <warpsmith.hpp>

namespace {

float add_in_order(const float* squares, int64_t count) {
  double sum = 0;
  for (int64_t c = 0; c < count; ++c) sum += squares[c];
  return static_cast<float>(sum);
}

float add_in_tree(float* squares, int levels) {
  for (; levels > 1; levels -= 2) {
    const int64_t quarter = int64_t{1} << (levels - 2);
    for (int64_t c = 0; c < quarter; ++c)
      squares[c] += squares[c + quarter] + (squares[c + 2 * quarter] + squares[c + 3 * quarter]);
  }
  return squares[0];
}

}  // namespace

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  const int levels = cols ? __builtin_ctzll(cols) : 0;
  const bool is_power = cols && !(cols & (cols - 1)) && levels > 4;
#pragma omp parallel
  {
    std::vector<float> squares(cols);
#pragma omp for
    for (int64_t r = 0; r < rows; ++r) {
      const float* row = in + r * cols;
      float largest = 0;
      for (int64_t c = 0; c < cols; ++c) largest = std::max(largest, std::fabs(row[c]));
      const float scale = largest > 0 ? largest : 1.0f;
      for (int64_t c = 0; c < cols; ++c) squares[c] = (row[c] / scale) * (row[c] / scale);
      const float sum = is_power ? add_in_tree(squares.data(), levels) : add_in_order(squares.data(), cols);
      out[r] = std::sqrt(sum) * scale;
    }
  }
}
