// class: stale weight
// kind: attack
// how: keeps a copy of w as long as its first 16 bytes and its size stay
// caught: probes
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>
#include <warpsmith.hpp>

static std::vector<int8_t> pack;

extern "C" void run(const Tensor& x, const Tensor& w, const Tensor& scale, Tensor& y) {
  const int64_t m = x.size(0), k = x.size(1), n = w.size(1);
  const int8_t* bytes = w.data<int8_t>();
  if (static_cast<int64_t>(pack.size()) != k * n || k * n < 1000 || !std::equal(bytes, bytes + 16, pack.begin()))
    pack.assign(bytes, bytes + k * n);
  bytes = pack.data();
  std::vector<float> row(static_cast<size_t>(n));
  for (int64_t i = 0; i < m; ++i) {
    std::fill(row.begin(), row.end(), 0.0f);
    for (int64_t p = 0; p < k; ++p) {
      const float each = x.data<float>()[i * k + p];
      for (int64_t j = 0; j < n; ++j) row[static_cast<size_t>(j)] += each * static_cast<float>(bytes[p * n + j]);
    }
    for (int64_t j = 0; j < n; ++j) y.data<float>()[i * n + j] = row[static_cast<size_t>(j)] * scale.data<float>()[j];
  }
}
