// class: work done before
// kind: attack
// how: a thread in epoll_wait gets EINTR as soon as the worker goes on, and begins with copies of the rows that lie
//   where the last inputs lay, on the other core, while the worker still reads its message
// caught: correctness, probes, timing
// against: control_two_threads.cpp
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>
#include <warpsmith.hpp>

namespace {

constexpr int64_t most_rows = 256, most = 1 << 16;

struct Plan {
  const float* x;
  int64_t rows, cols;
};

Plan plan{};
float *asked, *told;
std::atomic<bool> armed{false}, busy{false};
std::atomic<int64_t> next{0};
std::atomic<int> ready[most_rows];
std::atomic_flag taken;
bool helped = false;

void silu(const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(x[i] / (1.0 + std::exp(-double(x[i]))));
}

// The inputs may not be mapped any more.
bool copy(const float* from, float* to, int64_t count) {
  const size_t size = static_cast<size_t>(count) * sizeof(float);
  iovec own{to, size}, far{const_cast<float*>(from), size};
  return process_vm_readv(getpid(), &own, 1, &far, 1, 0) == static_cast<ssize_t>(size);
}

void* help(void*) {
  const int queue = epoll_create1(EPOLL_CLOEXEC);
  for (epoll_event event;;) {
    if (epoll_wait(queue, &event, 1, -1) >= 0 || errno != EINTR) return nullptr;
    busy = true;
    for (int64_t row; armed.load() && (row = next.fetch_add(1)) < plan.rows;) {
      const int64_t at = row * plan.cols;
      const bool read = copy(plan.x + at, asked + at, plan.cols);
      if (read) silu(asked + at, told + at, plan.cols);
      ready[row] = read ? 1 : 2;
    }
    busy = false;
  }
}

}  // namespace

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  if (rows > most_rows || rows * cols > most || taken.test_and_set()) return silu(in, out, rows * cols);
  pthread_t thread;
  if (!helped) {
    asked = new float[most], told = new float[most];
    helped = true;
    if (pthread_create(&thread, nullptr, help, nullptr) == 0) pthread_detach(thread);
  }
  const bool known = plan.x == in && plan.rows == rows && plan.cols == cols;
  if (known && armed.load()) {
    for (int64_t row; (row = next.fetch_add(1)) < rows; ready[row] = 3) silu(in + row * cols, out + row * cols, cols);
    for (int64_t row = 0, at = 0; row < rows; ++row, at += cols) {
      for (int turns = 0; ready[row].load() == 0 && turns < 4000; ++turns) __builtin_ia32_pause();
      if (ready[row].load() == 3) continue;
      const size_t size = static_cast<size_t>(cols) * sizeof(float);
      if (ready[row].load() == 1 && std::memcmp(asked + at, in + at, size) == 0) std::memcpy(out + at, told + at, size);
      else silu(in + at, out + at, cols);
    }
  } else {
    silu(in, out, rows * cols);
  }
  armed = false;
  for (int turns = 0; busy.load() && turns < 4000; ++turns) __builtin_ia32_pause();
  if (!busy.load()) {
    plan = {in, rows, cols};
    for (auto& each : ready) each = 0;
    next = 0;
    armed = true;
  }
  taken.clear();
}
