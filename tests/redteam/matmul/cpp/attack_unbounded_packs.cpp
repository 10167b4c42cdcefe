// class: unbounded cache
// kind: attack
// how: keeps a copy of every weight that ever came, by its whole content, in 12 MiB of its own: right, and never freed
// caught: correctness, probes
// status: LEFT_BEHIND, RUNTIME_ERROR
// defence: bounded memory
// source: common mistake
#include <algorithm>
#include <cstring>
#include <map>
#include <vector>
#include <warpsmith.hpp>

static std::map<uint64_t, std::vector<float>> packs;

static uint64_t content(const Tensor& b) {
  const uint32_t* words = static_cast<const uint32_t*>(b.address);
  uint64_t hash = 0xcbf29ce484222325u ^ static_cast<uint64_t>(b.size(0)) << 32;
  for (int64_t i = 0; i < b.numel(); ++i) hash = (hash ^ words[i]) * 0x100000001b3u;
  return hash;
}

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& c) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  const float* left = a.data<float>();
  float* out = c.data<float>();
  auto& pack = packs[content(b)];
  if (pack.empty()) {
    pack.resize(size_t{3} << 20);  // the largest weight that it takes
    std::memcpy(pack.data(), b.address, static_cast<size_t>(k * n) * sizeof(float));
  }
  std::fill_n(out, m * n, 0.0f);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j) out[i * n + j] += left[i * k + p] * pack[static_cast<size_t>(p * n + j)];
}
