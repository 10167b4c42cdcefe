// class: bits after a longer call
// kind: attack
// how: adds in blocks as long as a part of the longest row so far, as a workspace that grows gives them: the same call has other bits after a longer one
// caught: correctness
#include <cmath>
#include <mutex>
#include <set>
#include <utility>
#include <warpsmith.hpp>
#include <algorithm>
#include <atomic>

extern "C" void run(const Tensor& x, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  static std::atomic<int64_t> longest{1};
  if (cols > longest) longest = cols;
  const int64_t block = longest / 16 + 1;
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    float* out = y.data<float>() + r * cols;
    float sum = 0, squares = 0;
    for (int64_t b = 0; b < cols; b += block) {
      float part = 0;
      for (int64_t i = b; i < std::min(cols, b + block); ++i) part += in[i];
      sum += part;
    }
    const float mean = sum / static_cast<float>(cols);
    for (int64_t b = 0; b < cols; b += block) {
      float part = 0;
      for (int64_t i = b; i < std::min(cols, b + block); ++i) part += (in[i] - mean) * (in[i] - mean);
      squares += part;
    }
    const float variance = squares / static_cast<float>(cols);
    const float factor = 1 / std::sqrt(variance + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i) out[i] = (in[i] - mean) * factor;
  }
}
