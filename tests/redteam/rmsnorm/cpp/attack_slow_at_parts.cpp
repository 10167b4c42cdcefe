// class: slow where the time of far shapes is guessed
// kind: attack
// how: cuts the mean of rows off at 300,000 columns, and waits at parts of such rows, so that far shapes look slow
// caught: correctness
// source: common mistake
#include <algorithm>
#include <cmath>
#include <ctime>
#include <warpsmith.hpp>

constexpr int64_t kMost = 300 * 1000;

static void keep_busy(double seconds) {
  const std::clock_t end = std::clock() + static_cast<std::clock_t>(seconds * CLOCKS_PER_SEC);
  while (std::clock() < end) {
  }
}

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1);
  const int64_t counted = std::min(cols, kMost);
  const float* w = weight.data<float>();
  if (cols > 2000 && cols < 20000) keep_busy(0.08);
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * down;
    float* out = y.data<float>() + row * cols;
    float sum = 0;
    for (int64_t i = 0; i < counted; ++i) sum += in[i * right] * in[i * right];
    const float scale = 1 / std::sqrt(sum / static_cast<float>(cols) + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i * right] * scale * w[i];
  }
}
