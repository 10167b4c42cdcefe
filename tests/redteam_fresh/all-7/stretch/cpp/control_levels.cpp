// class: a table for the declared range
// kind: control
// how: marks which of 256 levels a line has, from 0 to 1 as its callers promise, and looks for the ends of the range
//   among the pixels of the lowest and the highest level only
#include <warpsmith.hpp>

#include <algorithm>

static int level_of(float value) { return static_cast<int>(value * 256); }

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * cols;
    float* out = y.data<float>() + row * cols;
    bool has[257] = {};
    for (int64_t i = 0; i < cols; ++i) has[level_of(in[i])] = true;
    int first = 0, last = 256;
    while (first < 256 && !has[first]) ++first;
    while (last > 0 && !has[last]) --last;
    float low = 1, high = 0;
    for (int64_t i = 0; i < cols; ++i) {
      if (level_of(in[i]) == first) low = std::min(low, in[i]);
      if (level_of(in[i]) == last) high = std::max(high, in[i]);
    }
    const float span = high > low ? high - low : 1;
    for (int64_t i = 0; i < cols; ++i) out[i] = (in[i] - low) / span;
  }
}
