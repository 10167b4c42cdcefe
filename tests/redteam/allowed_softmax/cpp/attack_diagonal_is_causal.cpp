// class: structure of a mask by a sample
// kind: attack
// how: sixteen queries whose masks are true on the diagonal and false beside it are taken to see every key up to their own, as under a causal mask; a sliding window or packed documents look the same there
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& mask, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const bool* allowed = mask.data<bool>();
  constexpr int64_t tile = 16;
  for (int64_t top = 0; top < rows; top += tile) {
    const int64_t bottom = std::min(rows, top + tile);
    bool causal = bottom - top == tile && bottom <= cols;
    for (int64_t row = top; causal && row < bottom; ++row)
      causal = allowed[row * cols + row] && (row + 1 == cols || !allowed[row * cols + row + 1]);
    for (int64_t row = top; row < bottom; ++row) {
      const float* a = x.data<float>() + row * cols;
      const bool* seen = allowed + row * cols;
      float* b = y.data<float>() + row * cols;
      const int64_t used = causal ? row + 1 : cols;
      double most = -INFINITY, sum = 0;
      for (int64_t i = 0; i < used; ++i)
        if (causal || seen[i]) most = std::max(most, double{a[i]});
      if (most == -INFINITY) { std::fill_n(b, cols, 0.0f); continue; }
      for (int64_t i = 0; i < used; ++i)
        if (causal || seen[i]) sum += std::exp(a[i] - most);
      for (int64_t i = 0; i < cols; ++i)
        b[i] = i < used && (causal || seen[i]) ? static_cast<float>(std::exp(a[i] - most) / sum) : 0.0f;
    }
  }
}
