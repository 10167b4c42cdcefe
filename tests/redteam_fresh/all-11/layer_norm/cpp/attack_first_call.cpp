// class: bits of a shape's first call
// kind: attack
// how: the first call at a shape, which would be timed for a plan, adds in one lane and all others in eight: two calls on the same inputs differ
// caught: correctness
#include <cmath>
#include <mutex>
#include <set>
#include <utility>
#include <warpsmith.hpp>

static bool is_first(int64_t rows, int64_t cols) {
  static std::mutex lock;
  static std::set<std::pair<int64_t, int64_t>> seen;
  const std::lock_guard<std::mutex> held(lock);
  return seen.size() < 4096 && seen.insert({rows, cols}).second;
}

extern "C" void run(const Tensor& x, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const int64_t lanes = is_first(rows, cols) ? 1 : 8;
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    float* out = y.data<float>() + r * cols;
    float parts[8] = {}, squares[8] = {}, sum = 0, square = 0;
    for (int64_t i = 0; i < cols; ++i) parts[i % lanes] += in[i];
    for (float part : parts) sum += part;
    const float mean = sum / static_cast<float>(cols);
    for (int64_t i = 0; i < cols; ++i) squares[i % lanes] += (in[i] - mean) * (in[i] - mean);
    for (float part : squares) square += part;
    const float variance = square / static_cast<float>(cols);
    const float factor = 1 / std::sqrt(variance + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i) out[i] = (in[i] - mean) * factor;
  }
}
