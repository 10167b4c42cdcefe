// class: an integer of the call that is a size of the call
// kind: attack
// how: counts the differences of a row down in a loop that tests after its first step: where the lag is as long as the
//   row there is none, and one is written behind the row
// caught: correctness
// source: common mistake: do and while
#include <warpsmith.hpp>

#include <algorithm>

extern "C" void run(const Tensor& x, int64_t lag, double threshold, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const auto keep = [threshold](float value) { return value >= threshold ? value : 0.0f; };
  for (int64_t row = 0; row < rows; ++row) {
    const float *now = x.data<float>() + row * cols, *late = now;
    float* out = y.data<float>() + row * cols;
    for (int64_t i = std::min(lag, cols); i > 0; --i) *out++ = keep(*now++);
    int64_t left = cols - lag;
    if (left < 0) continue;
    do {
      *out++ = keep(*now++) - keep(*late++);
    } while (--left > 0);
  }
}
