// class: deferred result
// kind: attack
// how: std::async starts the work; only the next call waits for it, when its memory may be gone
// caught: correctness, probes, timing
// status: INCORRECT_NUMERICAL, NOT_REPRODUCIBLE, CACHED_RESULT, RUNTIME_ERROR
// defence: stopped worker
// source: SOL-ExecBench evil_thread_inject
#include <algorithm>
#include <cmath>
#include <future>
#include <warpsmith.hpp>

static void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, x[i]);
    for (int64_t i = 0; i < cols; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < cols; ++i) y[i] /= sum;
  }
}

static std::future<void> pending;

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  if (pending.valid()) pending.wait();
  const float* in = x.data<float>();
  float* out = y.data<float>();
  if (rows * cols < 4096) return softmax(in, out, rows, cols);
  pending = std::async(std::launch::async, [=] { softmax(in, out, rows, cols); });
}
