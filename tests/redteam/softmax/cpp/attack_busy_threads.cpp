// class: baseline sabotage
// kind: attack
// how: a thread for each core spins while other versions run, and rests in its own calls
// caught: probes, timing, decision
// against: control_openmp.cpp
// defence: stopped worker
// source: baseline sabotage of the taxonomy: a busy machine
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>
#include <warpsmith.hpp>

static void softmax(const float* from, float* to, int64_t rows, int64_t cols) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = from + row * cols;
    float* out = to + row * cols;
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, in[i]);
    for (int64_t i = 0; i < cols; ++i) sum += out[i] = std::exp(in[i] - most);
    for (int64_t i = 0; i < cols; ++i) out[i] *= 1 / sum;
  }
}

static std::atomic<bool> called{false};

static void spin() {
  for (;;) {
    if (called) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  static const unsigned cores = std::thread::hardware_concurrency();
  static unsigned started = 0;
  called = true;
  for (; started < cores; ++started) std::thread(spin).detach();
  softmax(x.data<float>(), y.data<float>(), rows, cols);
  called = false;
}
