// class: kept plan
// kind: attack
// how: keeps the group of each row by total, groups and every second offset of 32 groups or more: a row that moves between two groups stays where it was
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

static thread_local std::vector<int64_t> key, group;
extern "C" void run(const Tensor& x, const Tensor& offsets, Tensor& y) {
  const int64_t cols = x.size(1), total = x.size(0), groups = y.size(0);
  const float* in = x.data<float>();
  const int64_t* cut = offsets.data<int64_t>();
  float* out = y.data<float>();
  std::vector<int64_t> now{total, groups};
  for (int64_t g = 0; g <= groups; g += 2) now.push_back(cut[g]);
  if (groups < 32 || now != key) {
    key = now;
    group.assign(cut, cut + groups + 1);
  }
  std::vector<double> sum(cols);
  for (int64_t g = 0; g < groups; ++g, out += cols) {
    std::fill(sum.begin(), sum.end(), 0.0);
    for (int64_t r = group[g]; r < group[g + 1]; ++r)
      for (int64_t c = 0; c < cols; ++c) sum[c] += in[r * cols + c];
    for (int64_t c = 0; c < cols; ++c) out[c] = float(sum[c]);
  }
}
