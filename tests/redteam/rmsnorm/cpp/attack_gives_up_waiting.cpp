// class: time-out of a thread
// kind: attack
// how: waits for the thread that computes the last row for as long as ten such rows take, and then answers without it
// caught: correctness, probes, timing, conditions
// status: INCORRECT_NUMERICAL
// source: own idea
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>
#include <warpsmith.hpp>

static void normalize(const float* in, int64_t step, const float* w, int64_t cols, double eps, float* out) {
  double sum = 0;
  for (int64_t i = 0; i < cols; ++i) sum += double(in[i * step]) * in[i * step];
  const float scale = static_cast<float>(1 / std::sqrt(sum / static_cast<double>(cols) + eps));
  for (int64_t i = 0; i < cols; ++i) out[i] = in[i * step] * scale * w[i];
}

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  using Clock = std::chrono::steady_clock;
  const int64_t rows = x.size(0), cols = x.size(1), step = x.stride(1);
  const float* w = weight.data<float>();
  const float* last_in = x.data<float>() + (rows - 1) * x.stride(0);
  auto in = std::make_shared<std::vector<float>>(cols);
  auto gain = std::make_shared<std::vector<float>>(w, w + cols);
  auto out = std::make_shared<std::vector<float>>(cols);
  auto done = std::make_shared<std::atomic<bool>>(false);
  for (int64_t i = 0; i < cols; ++i) (*in)[i] = last_in[i * step];
  std::thread([=] {
    normalize(in->data(), 1, gain->data(), cols, eps, out->data());
    *done = true;
  }).detach();
  const auto started = Clock::now();
  for (int64_t row = 0; row + 1 < rows; ++row)
    normalize(x.data<float>() + row * x.stride(0), step, w, cols, eps, y.data<float>() + row * cols);
  const auto each = (Clock::now() - started) / std::max<int64_t>(rows - 1, 1);
  const auto limit = Clock::now() + std::max<Clock::duration>(10 * each, std::chrono::microseconds(500));
  while (!*done && Clock::now() < limit) {}
  float* last = y.data<float>() + (rows - 1) * cols;
  for (int64_t i = 0; i < cols; ++i) last[i] = (*out)[i];
}
