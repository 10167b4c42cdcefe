// class: weight cache with a tolerance
// kind: attack
// how: keeps a packed weight while no element has moved by 0.003 % since the call before: steps of a small learning rate are never seen, however many there are
// caught: probes
// source: common mistake
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1);
  const float* w = weight.data<float>();
  static thread_local std::vector<float> before, packed;
  bool same = static_cast<int64_t>(before.size()) == cols;
  for (int64_t i = 0; same && i < cols; ++i) same = std::fabs(w[i] - before[i]) <= 3e-5f * std::fabs(before[i]);
  if (!same) packed.assign(w, w + cols);
  before.assign(w, w + cols);
  const float* kept = packed.data();
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * down;
    float* out = y.data<float>() + row * cols;
    float sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += in[i * right] * in[i * right];
    const float scale = 1 / std::sqrt(sum / static_cast<float>(cols) + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i * right] * scale * kept[i];
  }
}
