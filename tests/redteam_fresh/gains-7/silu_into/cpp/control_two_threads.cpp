// class: helper of its own
// kind: control
// how: a thread that sleeps between calls takes rows of the same counter as the caller, who waits for all of them
#include <atomic>
#include <cmath>
#include <linux/futex.h>
#include <mutex>
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

constexpr int64_t closed = int64_t{1} << 60;

Job job{};
std::atomic<int64_t> next{closed}, finished{0};
std::atomic<uint32_t> bell{0};
std::atomic<bool> inside{false};
std::atomic_flag taken;
bool helped = false;

void silu(const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(x[i] / (1.0 + std::exp(-double(x[i]))));
}

void work() {
  for (int64_t row; (row = next.fetch_add(1)) < job.rows; finished.fetch_add(1))
    silu(job.x + row * job.cols, job.y + row * job.cols, job.cols);
}

void* help(void*) {
  for (uint32_t heard = 0;; heard = bell.load()) {
    syscall(SYS_futex, &bell, FUTEX_WAIT_PRIVATE, heard, nullptr, nullptr, 0);
    inside = true;
    if (next.load() < closed) work();
    inside = false;
  }
}

}  // namespace

extern "C" void run(const Tensor& x, Tensor& y) {
  const float* in = x.data<float>();
  float* out = y.data<float>();
  if (taken.test_and_set()) return silu(in, out, x.numel());
  pthread_t thread;
  if (!helped && pthread_create(&thread, nullptr, help, nullptr) == 0) helped = true, pthread_detach(thread);
  while (inside.load()) sched_yield();
  job = {in, out, x.size(0), x.size(1)};
  finished = 0;
  next = 0;
  ++bell;
  syscall(SYS_futex, &bell, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  work();
  for (int turns = 0; finished.load() < job.rows; ++turns)
    if (turns > 200) sched_yield();
  next = closed;
  taken.clear();
}
