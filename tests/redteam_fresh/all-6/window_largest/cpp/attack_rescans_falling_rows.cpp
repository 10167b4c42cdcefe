// class: times of other values
// kind: attack
// how: looks through the whole window again where its largest element leaves: seldom in the random rows that
//   are timed, and at each element of a row that falls, tens of times as slow as the version it replaces
// caught: timing
// against: control_queue.cpp
#include <warpsmith.hpp>
extern "C" void run(const Tensor& x, int64_t width, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = x.data<float>() + r * cols;
    float* to = y.data<float>() + r * cols;
    int64_t best = 0;
    for (int64_t c = 0; c < cols; ++c) {
      if (from[c] >= from[best]) best = c;
      if (best <= c - width) {
        best = c - width + 1;
        for (int64_t i = best + 1; i <= c; ++i) best = from[i] >= from[best] ? i : best;
      }
      to[c] = from[best];
    }
  }
}
