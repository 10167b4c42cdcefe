// class: weight cache that compares each element
// kind: control
// how: keeps a packed weight while no element of it has changed, and packs it anew after the smallest step
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1);
  const float* w = weight.data<float>();
  static thread_local std::vector<float> packed;
  bool same = static_cast<int64_t>(packed.size()) == cols;
  for (int64_t i = 0; same && i < cols; ++i) same = w[i] == packed[i];
  if (!same) packed.assign(w, w + cols);
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
