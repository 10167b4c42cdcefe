// class: stale weight
// kind: attack
// how: keeps a copy of the weight as long as its address and its first and last elements are the same
// caught: correctness, probes
// status: INCORRECT_NUMERICAL, CACHED_RESULT
// defence: weights updated in place
// source: weight pack without a version check
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

static const void* known = nullptr;
static std::vector<float> kept;

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1);
  const float* given = weight.data<float>();
  const bool sized = weight.address == known && static_cast<int64_t>(kept.size()) == cols;
  if (!sized || kept.front() != given[0] || kept.back() != given[cols - 1]) kept.assign(given, given + cols);
  known = weight.address;
  const float* w = kept.data();
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * down;
    float* out = y.data<float>() + row * cols;
    float sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += in[i * right] * in[i * right];
    const float scale = 1 / std::sqrt(sum / static_cast<float>(cols) + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i * right] * scale * w[i];
  }
}
