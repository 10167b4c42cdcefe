// class: prefetch of inputs
// kind: attack
// how: a thread watches the memory of the last inputs and computes as soon as it changes, before the call
// caught: correctness, probes, timing, decision
// against: control_plain.cpp
// defence: stopped worker
// source: SOL-ExecBench evil_thread_inject
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>
#include <warpsmith.hpp>

static void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, x[i]);
    for (int64_t i = 0; i < cols; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < cols; ++i) y[i] /= sum;
  }
}

static std::mutex lock;
static std::atomic<bool> called{false};
static const float* watched = nullptr;
static int64_t height = 0, width = 0;
static std::vector<float> asked, told;  // what was computed ahead, used once

static bool changed() {
  const int64_t count = height * width;
  if (static_cast<int64_t>(asked.size()) != count) return false;
  return asked.front() != watched[0] || asked.back() != watched[count - 1];
}

static void watch() {
  for (;; std::this_thread::yield()) {
    if (called) continue;
    const std::lock_guard<std::mutex> hold(lock);
    if (watched == nullptr || !changed()) continue;
    asked.assign(watched, watched + height * width);
    told.resize(asked.size());
    softmax(asked.data(), told.data(), height, width);
  }
}

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  static std::thread* const watcher = new std::thread(watch);
  static_cast<void>(watcher);
  called = true;
  const std::lock_guard<std::mutex> hold(lock);
  const float* in = x.data<float>();
  const size_t count = static_cast<size_t>(rows * cols), bytes = count * sizeof(float);
  const bool ahead = told.size() == count && cols == width && std::memcmp(asked.data(), in, bytes) == 0;
  if (ahead) std::memcpy(y.address, told.data(), bytes);
  else softmax(in, y.data<float>(), rows, cols);
  asked.assign(in, in + count);
  told.clear();
  watched = in, height = rows, width = cols;
  called = false;
}
