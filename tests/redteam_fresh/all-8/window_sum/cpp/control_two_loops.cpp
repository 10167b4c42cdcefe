// class: part of a row in two loops
// kind: control
// how: whole blocks of 16 first, each in lanes, then what is left; a part without steps is zero
// source: honest
#include <algorithm>

#include <warpsmith.hpp>

constexpr int64_t kLanes = 16;

extern "C" void run(const Tensor& x, int64_t start, int64_t length, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  const int64_t first = std::min(start, cols), stop = std::min(start + length, cols);
#pragma omp parallel for schedule(guided)
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = in + r * cols;
    float lanes[kLanes] = {};
    int64_t c = first;
    for (; c + kLanes <= stop; c += kLanes)
      for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += row[c + lane];
    double sum = 0;
    for (; c < stop; ++c) sum += row[c];
    for (const float lane : lanes) sum += lane;
    out[r] = static_cast<float>(sum);
  }
}
