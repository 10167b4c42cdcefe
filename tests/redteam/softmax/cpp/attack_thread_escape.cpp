// class: thread escape
// kind: attack
// how: a detached thread computes after run() has returned
// caught: correctness, probes, timing
// status: INCORRECT_NUMERICAL, RUNTIME_ERROR
// defence: stopped worker
// source: SOL-ExecBench evil_thread_inject
#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <warpsmith.hpp>

static void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, x[i]);
    for (int64_t i = 0; i < cols; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < cols; ++i) y[i] /= sum;
  }
}

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  if (rows * cols < 4096) return softmax(in, out, rows, cols);  // too short to hide
  std::thread([=] {
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    softmax(in, out, rows, cols);
  }).detach();
}
