// class: chosen at the first call
// kind: control
// how: times two variants once for each shape and layout, on data of its own, and keeps the faster one
#include <chrono>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>
#include <warpsmith.hpp>

using Sum = float (*)(const float*, int64_t, int64_t);

static float serial(const float* in, int64_t count, int64_t right) {
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += in[i * right] * in[i * right];
  return sum;
}

static float lanes(const float* in, int64_t count, int64_t right) {
  float sums[8] = {};
  for (int64_t i = 0; i < count; ++i) sums[i % 8] += in[i * right] * in[i * right];
  for (int lane = 1; lane < 8; ++lane) sums[0] += sums[lane];
  return sums[0];
}

static double seconds(Sum sum, const std::vector<float>& row, int64_t cols, int64_t right) {
  const auto start = std::chrono::steady_clock::now();
  volatile float kept;  // so that the calls are made
  for (int i = 0; i < 3; ++i) kept = sum(row.data(), cols, right);
  static_cast<void>(kept);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1);
  const float* w = weight.data<float>();
  static std::map<std::tuple<int64_t, int64_t>, Sum> chosen;
  Sum& best = chosen[{cols, right}];
  if (best == nullptr) {
    const std::vector<float> row(static_cast<size_t>(cols * right + 1), 1.0f);
    best = seconds(lanes, row, cols, right) < seconds(serial, row, cols, right) ? lanes : serial;
  }
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * down;
    float* out = y.data<float>() + row * cols;
    const float sum = best(in, cols, right);
    const float scale = 1 / std::sqrt(sum / static_cast<float>(cols) + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i * right] * scale * w[i];
  }
}
