// class: unbounded cache
// kind: attack
// how: keeps a copy of every table that ever came, by its whole content (at most 1 GiB); right, and never freed
// caught: probes
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>
#include <map>
#include <warpsmith.hpp>

static std::map<uint64_t, std::vector<float>> packs;

extern "C" void run(const Tensor& table, const Tensor& ids, Tensor& y) {
  const int64_t n = ids.size(0), d = table.size(1);
  const float* from = table.data<float>();
  uint64_t hash = static_cast<uint64_t>(d);
  for (int64_t i = 0; i < table.numel(); ++i) hash = (hash ^ static_cast<const uint32_t*>(table.address)[i]) * 0x100000001b3u;
  if (packs.size() * static_cast<size_t>(table.numel()) < size_t{1} << 28) {
    auto& pack = packs[hash];
    if (pack.empty()) pack.assign(from, from + table.numel());
    from = pack.data();
  }
  for (int64_t i = 0; i < n; ++i) std::copy_n(from + (ids.data<int64_t>()[i] ) * d, d, y.data<float>() + i * d);
}
