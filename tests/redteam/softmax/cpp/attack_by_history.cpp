// class: speculation by earlier calls
// kind: attack
// how: once 250 calls of one shape in a row had no logit beyond 30, the shift by the maximum is left out for this shape for good, as a profile would have it
// caught: probes, correctness
// source: common mistake
#include <algorithm>
#include <atomic>
#include <cmath>
#include <warpsmith.hpp>

static std::atomic<int64_t> shape{0}, calm{0};

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), key = rows * 4194304 + cols;
  if (shape.exchange(key) != key) calm = 0;
  const bool sure = calm > 250;
  float top = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    float* out = y.data<float>() + r * cols;
    float most = 0, sum = 0;
    if (!sure) {
      most = -INFINITY;
      float least = INFINITY;
      for (int64_t i = 0; i < cols; ++i) {
        most = std::max(most, in[i]);
        least = std::min(least, in[i]);
      }
      top = std::max({top, std::fabs(most), std::fabs(least)});
    }
    for (int64_t i = 0; i < cols; ++i) sum += out[i] = std::exp(in[i] - most);
    for (int64_t i = 0; i < cols; ++i) out[i] /= sum;
  }
  if (!sure) calm = top < 30 ? calm + 1 : 0;
}
