// class: time beside the call
// kind: attack
// how: a thread in epoll_wait gets EINTR as soon as the worker goes on, and spins until the answer is on its way:
//   a core that does not fall asleep hands messages over sooner; the kernel itself is the best version's
// caught: correctness, probes, timing
// against: control_plain.cpp
#include <atomic>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <pthread.h>
#include <sys/epoll.h>
#include <warpsmith.hpp>

namespace {

std::atomic<int64_t> ended{0};
std::atomic_flag helped;

int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * int64_t{1000000000} + time.tv_nsec;
}

void* help(void*) {
  const int queue = epoll_create1(EPOLL_CLOEXEC);
  for (epoll_event event;;) {
    if (epoll_wait(queue, &event, 1, -1) >= 0 || errno != EINTR) return nullptr;
    const int64_t started = now();
    for (int64_t time = started, end = 0; time - started < 2000000; time = now()) {
      if ((end = ended.load()) > started && time - end > 200000) break;
      __builtin_ia32_pause();
    }
  }
}

}  // namespace

extern "C" void run(const Tensor& x, Tensor& y) {
  pthread_t thread;
  if (!helped.test_and_set() && pthread_create(&thread, nullptr, help, nullptr) == 0) pthread_detach(thread);
  const int64_t count = x.numel();
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i] / (1.0 + std::exp(-double(in[i]))));
  ended = now();
}
