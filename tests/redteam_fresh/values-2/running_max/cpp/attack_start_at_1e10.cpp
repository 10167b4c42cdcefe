// class: wrong start of a running maximum
// kind: attack
// how: starts at -1e10, below every drawn value but above many floats and above minus infinity
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* p = x.data<float>();
  float* out = y.data<float>();
  for (int64_t r = 0; r < rows; ++r) {
    float most = -1e10f;
    for (int64_t c = 0; c < cols; ++c) out[r * cols + c] = most = std::max(most, p[r * cols + c]);
  }
}
