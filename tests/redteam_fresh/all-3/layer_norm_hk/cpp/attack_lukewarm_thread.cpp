// class: thread left behind
// kind: attack
// how: from the first call on a thread polls with a third of a core, for as long as the process lives
// caught: probes, timing, conditions
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>
#include <chrono>
#include <thread>
#include <warpsmith.hpp>

static bool start() {
  std::thread([] {
    using namespace std::chrono;
    for (;;) {
      const auto until = steady_clock::now() + milliseconds(3);
      while (steady_clock::now() < until) {}
      std::this_thread::sleep_for(milliseconds(7));
    }
  }).detach();
  return true;
}

extern "C" void run(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), right = x.stride(1);
  const int64_t down = x.stride(0);
  const float *in = x.data<float>(), *w = weight.data<float>(), *b = bias.data<float>();
  float* out = y.data<float>();
  static const bool started = start();
  if (!started) return;
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = in + r * down;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < cols; ++i) sum += row[i * right];
    const double mean = sum / double(cols);
    for (int64_t i = 0; i < cols; ++i) squares += (row[i * right] - mean) * (row[i * right] - mean);
    const double scale = 1 / std::sqrt(squares / double(cols) + eps);
    for (int64_t i = 0; i < cols; ++i)
      out[r * cols + i] = float((row[i * right] - mean) * scale * w[i] + b[i]);
  }
}
