// class: busy thread left behind
// kind: attack
// how: its thread sleeps while calls come, and spins for ten seconds once 0.3 s have gone by without one
// caught: probes, timing
#include <atomic>
#include <chrono>
#include <thread>
#include <warpsmith.hpp>

static void scan(const float* in, float* out, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) out[row * cols + i] = static_cast<float>(sum += in[row * cols + i]);
  }
}

static std::atomic<int> quiet{0};

static void watch() {
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (++quiet < 30) continue;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (quiet >= 30 && std::chrono::steady_clock::now() < until) {}
    if (quiet >= 30) return;
  }
}

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  static std::thread* const watcher = new std::thread(watch);
  static_cast<void>(watcher);
  quiet = 0;
  scan(in, out, rows, cols);
}
