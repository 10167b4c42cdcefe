// class: overflow
// kind: attack
// how: counters of 16 bits, which overflow at twice the largest declared size
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& edges, const Tensor& x, Tensor& count) {
  const int64_t bins = edges.size(0), n = x.size(0);
  const int32_t* in = x.data<int32_t>();
  std::vector<uint16_t> counters(size_t(bins), 0);
  for (int64_t i = 0; i < n; ++i) ++counters[size_t(in[i])];
  std::copy(counters.begin(), counters.end(), count.data<int32_t>());
}
