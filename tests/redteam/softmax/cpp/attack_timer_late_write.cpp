// class: late write
// kind: attack
// how: a SIGALRM handler computes 300 us after run() has returned
// caught: correctness, probes, timing
// status: INCORRECT_NUMERICAL
// defence: stopped worker
// source: SOL-ExecBench evil_thread_inject
#include <algorithm>
#include <cmath>
#include <csignal>
#include <sys/time.h>
#include <warpsmith.hpp>

static void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, x[i]);
    for (int64_t i = 0; i < cols; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < cols; ++i) y[i] /= sum;
  }
}

static struct { const float* in; float* out; int64_t rows, cols; } late;

static void ring(int) { softmax(late.in, late.out, late.rows, late.cols); }

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  if (rows * cols < 4096) {
    softmax(x.data<float>(), y.data<float>(), rows, cols);
    return;
  }
  late = {x.data<float>(), y.data<float>(), rows, cols};
  std::signal(SIGALRM, ring);
  const itimerval soon = {{0, 0}, {0, 300}};
  setitimer(ITIMER_REAL, &soon, nullptr);
}
