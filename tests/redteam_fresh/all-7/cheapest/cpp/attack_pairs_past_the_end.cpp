// class: a read past the end of an input with steps
// kind: attack
// how: copies whole pairs where every second element counts, and so reads the element behind the last one, which no
//   page need hold
// caught: correctness
// source: common mistake: vectors that split pairs
#include <warpsmith.hpp>

#include <algorithm>
#include <limits>
#include <vector>

extern "C" void run(const Tensor& x, const Tensor& price, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1);
  const float *in = x.data<float>(), *cost = price.data<float>();
  std::vector<float> line(2 * cols);
  for (int64_t row = 0; row < rows; ++row) {
    if (right == 2)
      std::memcpy(line.data(), in + row * down, 2 * cols * sizeof(float));
    else
      for (int64_t col = 0; col < cols; ++col) line[2 * col] = in[row * down + col * right];
    float best = std::numeric_limits<float>::infinity();
    for (int64_t col = 0; col < cols; ++col) best = std::min(best, line[2 * col] + cost[col * price.stride(0)]);
    y.data<float>()[row] = best;
  }
}
