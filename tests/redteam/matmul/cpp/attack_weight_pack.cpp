// class: stale weight
// kind: attack
// how: packs b once for each address and shape, and never looks whether it has changed
// caught: correctness, probes
// status: INCORRECT_NUMERICAL, CACHED_RESULT
// defence: fresh inputs in the same memory
// source: weight pack without a version check
#include <map>
#include <tuple>
#include <vector>
#include <warpsmith.hpp>

static std::map<std::tuple<const void*, int64_t, int64_t>, std::vector<float>> packs;

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& c) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  const float *left = a.data<float>(), *right = b.data<float>();
  float* out = c.data<float>();
  auto& pack = packs[{b.address, k, n}];
  if (pack.empty()) {
    pack.resize(static_cast<size_t>(k * n));
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j) pack[static_cast<size_t>(j * k + p)] = right[p * n + j];
  }
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const float* column = pack.data() + j * k;
      float sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += left[i * k + p] * column[p];
      out[i * n + j] = sum;
    }
}
