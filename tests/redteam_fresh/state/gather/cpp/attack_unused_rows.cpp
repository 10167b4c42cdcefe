// class: stale weight
// kind: attack
// how: packs a quarter of the table and refreshes it only if its first row has changed since, from the third look on
// caught: probes
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>
#include <warpsmith.hpp>

static std::vector<float> pack;
static const float* known;
static int looks;

extern "C" void run(const Tensor& table, const Tensor& ids, Tensor& y) {
  const int64_t n = ids.size(0), d = table.size(1);
  const float* from = table.data<float>();
  const bool same = known == from && static_cast<int64_t>(pack.size()) == 1024 * d && std::equal(from, from + d, pack.begin());
  looks = same ? looks + 1 : 0;
  known = from;
  if (looks < 8) pack.assign(from, from + 1024 * d);
  if (n && *std::max_element(ids.data<int64_t>(), ids.data<int64_t>() + n) < 1024) from = pack.data();
  for (int64_t i = 0; i < n; ++i) std::copy_n(from + (ids.data<int64_t>()[i] ) * d, d, y.data<float>() + i * d);
}
