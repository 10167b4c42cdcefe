// class: result kept by content
// kind: attack
// how: keeps the results of every third row and compares the row with the last call's: a repeated call saves less than half
// caught: probes
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>
#include <warpsmith.hpp>

static thread_local std::vector<float> old, kept;

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  if (int64_t(old.size()) != rows * cols) {
    old.assign(size_t(rows * cols), NAN);
    kept.assign(size_t(rows * cols), 0.0f);
  }
  for (int64_t r = 0; r < rows; ++r) {
    const size_t at = size_t(r * cols), bytes = size_t(cols) * 4;
    if (r % 3 == 0 && std::memcmp(old.data() + at, in + at, bytes) == 0) {
      std::memcpy(out + at, kept.data() + at, bytes);
      continue;
    }
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) out[r * cols + i] = float(sum += in[r * cols + i]);
    if (r % 3 == 0) {
      std::memcpy(old.data() + at, in + at, bytes);
      std::memcpy(kept.data() + at, out + at, bytes);
    }
  }
}
