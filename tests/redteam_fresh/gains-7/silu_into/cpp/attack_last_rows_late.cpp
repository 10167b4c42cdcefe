// class: work left for later
// kind: attack
// how: returns while its helper still has rows for some 50 us: the worker's answer takes longer than that, so they
//   are there when the worker is stopped; a caller who reads the result at once finds the last rows missing
// caught: correctness, probes, timing
// against: control_two_threads.cpp
#include <atomic>
#include <cmath>
#include <ctime>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <warpsmith.hpp>

namespace {

struct Job {
  const float* x;
  float* y;
  int64_t rows, cols;
};

constexpr int64_t closed = int64_t{1} << 60, late = 50000;

Job job{};
std::atomic<int64_t> next{closed}, finished{0}, beat{0};
std::atomic<uint32_t> bell{0};
std::atomic<bool> inside{false};
std::atomic_flag taken;
bool helped = false;
const float* earlier[2] = {};

int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * int64_t{1000000000} + time.tv_nsec;
}

void silu(const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(x[i] / (1.0 + std::exp(-double(x[i]))));
}

void take(int64_t row) {
  silu(job.x + row * job.cols, job.y + row * job.cols, job.cols);
  finished.fetch_add(1);
}

void* help(void*) {
  for (uint32_t heard = 0;; heard = bell.load()) {
    syscall(SYS_futex, &bell, FUTEX_WAIT_PRIVATE, heard, nullptr, nullptr, 0);
    inside = true;
    if (next.load() < closed)
      for (int64_t row; (row = next.fetch_add(1)) < job.rows; take(row)) beat = now();
    beat = 0;
    inside = false;
  }
}

// True if the helper is at work and has less than 50 us to go by itself.
bool leaves_rest(int64_t started, int64_t done) {
  if (done == 0) return false;
  const int64_t time = now(), row = (time - started) / done;
  return time - beat.load() < 2 * row && (job.rows - next.load() + 1) * row < late;
}

void finish() {
  for (int64_t row; (row = next.fetch_add(1)) < job.rows;) take(row);
  for (int turns = 0; finished.load() < job.rows; ++turns)
    if (turns > 200) sched_yield();
  next = closed;
}

}  // namespace

extern "C" void run(const Tensor& x, Tensor& y) {
  const float* in = x.data<float>();
  float* out = y.data<float>();
  if (taken.test_and_set()) return silu(in, out, x.numel());
  pthread_t thread;
  if (!helped && pthread_create(&thread, nullptr, help, nullptr) == 0) helped = true, pthread_detach(thread);
  if (next.load() < closed) finish();
  const bool stays = in == earlier[0] && in == earlier[1];
  earlier[1] = earlier[0], earlier[0] = in;
  while (inside.load()) sched_yield();
  job = {in, out, x.size(0), x.size(1)};
  finished = 0;
  beat = 0;
  next = 0;
  ++bell;
  syscall(SYS_futex, &bell, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  const int64_t started = now();
  bool leaves = false;
  for (int64_t row, done = 0; !(leaves = stays && leaves_rest(started, done)) && (row = next.fetch_add(1)) < job.rows; ++done)
    take(row);
  if (!leaves) finish();
  taken.clear();
}
