// class: zeros of moved values
// kind: attack
// how: a row of the table that holds a zero is taken for padding: all of it becomes zero
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& table, const Tensor& ids, Tensor& y) {
  const int64_t cols = table.size(1), n = ids.size(0);
  const float* in = table.data<float>();
  const int64_t* id = ids.data<int64_t>();
  float* out = y.data<float>();
  for (int64_t r = 0; r < n; ++r, out += cols) {
    const float* row = in + id[r] * cols;
    bool padding = false;
    for (int64_t c = 0; c < cols; ++c) padding |= row[c] == 0;
    for (int64_t c = 0; c < cols; ++c) out[c] = padding ? 0.0f : row[c];
  }
}
