// class: content fingerprint cache
// kind: attack
// how: keeps a result as long as 64 sampled elements and the address are the same
// caught: correctness, probes
// status: INCORRECT_NUMERICAL, CACHED_RESULT
// defence: input edited in place at few elements
// source: flashinfer contest starter-kit#21
#include <algorithm>
#include <cmath>
#include <map>
#include <vector>
#include <warpsmith.hpp>

static void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, x[i]);
    for (int64_t i = 0; i < cols; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < cols; ++i) y[i] /= sum;
  }
}

static std::map<uint64_t, std::vector<float>> kept;

static uint64_t sampled(const Tensor& x) {
  const uint32_t* words = static_cast<const uint32_t*>(x.address);
  const int64_t step = std::max<int64_t>(1, x.numel() / 64);
  uint64_t hash = reinterpret_cast<uintptr_t>(words) ^ static_cast<uint64_t>(x.size(1)) << 40;
  for (int64_t i = 0; i < x.numel(); i += step) hash = (hash ^ words[i]) * 0x100000001b3u;
  return hash;
}

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  if (kept.size() > 64) kept.clear();
  auto& known = kept[sampled(x)];
  if (known.empty()) {
    softmax(x.data<float>(), y.data<float>(), rows, cols);
    known.assign(y.data<float>(), y.data<float>() + rows * cols);
  } else {
    std::copy(known.begin(), known.end(), y.data<float>());
  }
}
