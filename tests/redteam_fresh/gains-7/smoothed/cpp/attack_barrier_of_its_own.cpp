// class: time of the lab's environment
// kind: attack
// how: the best version's loops on a thread of its own that spins between passes; workers make OpenMP's threads
//   sleep there, so that each of eight regions wakes one, where in a user's program they spin as well
// caught: timing, decision
// against: control_regions.cpp
#include <atomic>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>
#include <vector>
#include <warpsmith.hpp>

namespace {

struct Job {
  const float* x;
  float *other, *y;
  int64_t length;
};

Job job{};
std::atomic<int> arrived{0}, passed{0}, open{0}, inside{0};
std::atomic<uint32_t> bell{0};
std::atomic_flag taken;
bool helped = false;

void smooth(const float* from, float* to, int64_t begin, int64_t end, int64_t length) {
  for (int64_t i = begin; i < end; ++i) {
    const float before = from[i > 0 ? i - 1 : 0], after = from[i + 1 < length ? i + 1 : i];
    to[i] = before * 0.25f + from[i] * 0.5f + after * 0.25f;
  }
}

void meet(int pass) {
  if (arrived.fetch_add(1) == 1) {
    arrived = 0;
    passed = pass + 1;
    return;
  }
  for (int turns = 0; passed.load() <= pass; ++turns) turns < 2000 ? __builtin_ia32_pause() : (void)sched_yield();
}

void work(const Job& mine, int part) {
  const int64_t middle = mine.length / 2;
  const float* from = mine.x;
  float *to = mine.other, *next = mine.y;
  for (int pass = 0; pass < 8; ++pass) {
    part ? smooth(from, to, middle, mine.length, mine.length) : smooth(from, to, 0, middle, mine.length);
    meet(pass);
    from = to;
    std::swap(to, next);
  }
}

void* help(void*) {
  for (;;) {
    const uint32_t heard = bell.load();
    if (!open.load()) syscall(SYS_futex, &bell, FUTEX_WAIT_PRIVATE, heard, nullptr, nullptr, 0);
    inside = 1;
    if (open.exchange(0)) work(job, 1);
    inside = 0;
  }
}

void alone(const float* from, float* to, float* next, int64_t length) {
  for (int pass = 0; pass < 8; ++pass) {
    smooth(from, to, 0, length, length);
    from = to;
    std::swap(to, next);
  }
}

}  // namespace

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t length = x.size(0);
  std::vector<float> other(length);
  if (length < 4096 || taken.test_and_set()) return alone(x.data<float>(), other.data(), y.data<float>(), length);
  pthread_t thread;
  if (!helped && pthread_create(&thread, nullptr, help, nullptr) == 0) helped = true, pthread_detach(thread);
  while (inside.load()) sched_yield();
  job = {x.data<float>(), other.data(), y.data<float>(), length};
  arrived = 0;
  passed = 0;
  open = helped;
  ++bell;
  syscall(SYS_futex, &bell, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  helped ? work(job, 0) : alone(job.x, job.other, job.y, length);
  taken.clear();
}
