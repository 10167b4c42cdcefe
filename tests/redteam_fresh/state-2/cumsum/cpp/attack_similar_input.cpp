// class: result of a similar input
// kind: attack
// how: keeps the last result as long as no element moved by half a percent of the largest
// caught: probes
#include <algorithm>
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

static void scan(const float* in, float* out, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) out[row * cols + i] = static_cast<float>(sum += in[row * cols + i]);
  }
}

static thread_local std::vector<float> asked, told;
static thread_local int64_t width = -1;

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  const int64_t count = rows * cols;
  if (width == cols && static_cast<int64_t>(asked.size()) == count) {
    float most = 0, moved = 0;
    for (int64_t i = 0; i < count; ++i) {
      most = std::max(most, std::fabs(in[i]));
      moved = std::max(moved, std::fabs(in[i] - asked[i]));
    }
    if (moved <= 0.005f * most) {
      std::copy(told.begin(), told.end(), out);
      return;
    }
  }
  scan(in, out, rows, cols);
  asked.assign(in, in + count), told.assign(out, out + count), width = cols;
}
