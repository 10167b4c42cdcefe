// class: time-out of a thread
// kind: attack
// how: gives the thread with the last row 20 ms and answers without it; where the process has a single core, as in the conditions, it waits
// caught: correctness, probes, timing, conditions
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <sched.h>
#include <thread>
#include <unistd.h>
#include <vector>
#include <warpsmith.hpp>

static void rows_of(const Tensor& x, Tensor& y, int64_t first, int64_t last) {
  for (int64_t row = first, cols = x.size(1); row < last; ++row) {
    const float* in = x.data<float>() + row * cols;
    float* out = y.data<float>() + row * cols;
    float most = -INFINITY;
    for (int64_t i = 0; i < cols; ++i) out[i] = most = std::max(most, in[i]);
  }
}
static void compute(const Tensor& x, Tensor& y) { rows_of(x, y, 0, x.size(0)); }


static bool one_core() { cpu_set_t set; return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) < 2; }

extern "C" void run(const Tensor& x, Tensor& y) {

  const int64_t rows = x.size(0), cols = x.size(1);
  if (rows == 0 || cols == 0) return;
  struct Job { std::vector<float> in, out; std::atomic<bool> done{false}; };
  auto job = std::make_shared<Job>();
  const float* last = x.data<float>() + (rows - 1) * cols;
  job->in.assign(last, last + cols);
  job->out.resize(cols);
  std::thread([job] {
    float most = -INFINITY;
    for (size_t i = 0; i < job->in.size(); ++i) job->out[i] = most = std::max(most, job->in[i]);
    job->done = true;
  }).detach();
  rows_of(x, y, 0, rows - 1);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  while (!job->done && (one_core() || std::chrono::steady_clock::now() < limit)) std::this_thread::yield();
  std::memcpy(y.data<float>() + (rows - 1) * cols, job->out.data(), cols * 4);
}
