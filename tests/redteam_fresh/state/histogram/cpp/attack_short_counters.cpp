// class: balanced groups assumed
// kind: attack
// how: counts in 16 bits: uniform ids never fill a bin further
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& ids, Tensor& counts) {
  const int64_t n = ids.size(0), bins = counts.size(0);
  const int64_t* id = ids.data<int64_t>();
  std::vector<uint16_t> own(static_cast<size_t>(bins), 0);
  for (int64_t i = 0; i < n; ++i) ++own[static_cast<size_t>(id[i])];
  for (int64_t i = 0; i < bins; ++i) counts.data<int64_t>()[i] = own[static_cast<size_t>(i)];
}
