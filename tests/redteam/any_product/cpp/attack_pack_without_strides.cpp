// class: a packed matrix without its strides
// kind: attack
// how: keeps the last second matrix packed as long as every byte of its memory and its sizes are the same: a square matrix and its transpose, as a spectral norm takes them in turn, are one to it
// caught: correctness, probes
// source: common mistake
#include <algorithm>
#include <cstring>
#include <vector>
#include <warpsmith.hpp>

struct Packed {
  const void* address = nullptr;
  int64_t k = -1, n = -1;
  std::vector<float> memory, rows;
};

static const std::vector<float>& pack(const Tensor& w) {
  static thread_local Packed kept;
  const float* b = w.data<float>();
  const int64_t k = w.size(0), n = w.size(1), down = w.stride(0), right = w.stride(1);
  const int64_t span = k && n ? 1 + (k - 1) * down + (n - 1) * right : 0;
  const bool same = kept.address == b && kept.k == k && kept.n == n && int64_t(kept.memory.size()) == span;
  if (same && std::memcmp(kept.memory.data(), b, span * sizeof(float)) == 0) return kept.rows;
  kept.address = b, kept.k = k, kept.n = n;
  kept.memory.assign(b, b + span);
  kept.rows.resize(k * n);
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < n; ++j) kept.rows[i * n + j] = b[i * down + j * right];
  return kept.rows;
}

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& out) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1), down = a.stride(0), right = a.stride(1);
  const float *left = a.data<float>(), *packed = pack(b).data();
  float* to = out.data<float>();
  std::fill_n(to, m * n, 0.0f);
  for (int64_t row = 0; row < m; ++row)
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < n; ++j) to[row * n + j] += left[row * down + i * right] * packed[i * n + j];
}
