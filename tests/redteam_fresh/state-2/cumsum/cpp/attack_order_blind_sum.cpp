// class: content fingerprint cache
// kind: attack
// how: keeps the last result by the sum of all words of x: rows or elements that change places are not seen
// caught: probes
#include <algorithm>
#include <vector>
#include <warpsmith.hpp>

static void scan(const float* in, float* out, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) out[row * cols + i] = static_cast<float>(sum += in[row * cols + i]);
  }
}

struct Kept { uint64_t key = 0; int64_t rows = -1, cols = -1; std::vector<float> y; };
static thread_local Kept kept;

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  const uint32_t* words = static_cast<const uint32_t*>(x.address);
  uint64_t key = 0;
  for (int64_t i = 0; i < rows * cols; ++i) key += static_cast<uint64_t>(words[i]) * words[i] + words[i];
  if (kept.rows == rows && kept.cols == cols && kept.key == key) {
    std::copy(kept.y.begin(), kept.y.end(), out);
    return;
  }
  scan(in, out, rows, cols);
  kept = {key, rows, cols, {out, out + rows * cols}};
}
