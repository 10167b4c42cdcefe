// class: plain loops
// kind: control
// how: counters of 32 bits
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& edges, const Tensor& x, Tensor& count) {
  const int64_t bins = edges.size(0), n = x.size(0);
  const int32_t* in = x.data<int32_t>();
  std::vector<int32_t> counters(size_t(bins), 0);
  for (int64_t i = 0; i < n; ++i) ++counters[size_t(in[i])];
  std::copy(counters.begin(), counters.end(), count.data<int32_t>());
}
