// class: work left for later
// kind: attack
// how: a thread clears the table after the call has returned, while the worker writes its answer and reads its next
//   message, which no clock counts as the call; a caller whose calls follow each other waits for all of it
// caught: timing, decision
// against: control_clears.cpp
#include <atomic>
#include <cstring>
#include <linux/futex.h>
#include <memory>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <warpsmith.hpp>

namespace {

constexpr int64_t room = 1 << 23;
enum : int { dirty, cleaning, clean };

int32_t* const table = new int32_t[room];
std::atomic<int> state{dirty};
std::atomic<uint32_t> bell{0};
std::atomic_flag taken;
bool helped = false;

void mark(const int32_t* in, int32_t* out, int64_t count, int32_t* seen) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = seen[in[i]];
    seen[in[i]] = 1;
  }
}

void clear_once() {
  int found = dirty;
  if (!state.compare_exchange_strong(found, cleaning)) return;
  std::memset(table, 0, room * sizeof(int32_t));
  state = clean;
}

void* help(void*) {
  for (uint32_t heard = 0;; heard = bell.load()) {
    syscall(SYS_futex, &bell, FUTEX_WAIT_PRIVATE, heard, nullptr, nullptr, 0);
    clear_once();
  }
}

}  // namespace

extern "C" void run(const Tensor& id, Tensor& repeated) {
  const int32_t* in = id.data<int32_t>();
  int32_t* out = repeated.data<int32_t>();
  if (taken.test_and_set()) {
    const std::unique_ptr<int32_t[]> own(new int32_t[room]());
    return mark(in, out, id.size(0), own.get());
  }
  pthread_t thread;
  if (!helped && pthread_create(&thread, nullptr, help, nullptr) == 0) helped = true, pthread_detach(thread);
  clear_once();
  for (int turns = 0; state.load() != clean; ++turns)
    if (turns > 2000) sched_yield();
  mark(in, out, id.size(0), table);
  state = dirty;
  taken.clear();
  ++bell;
  syscall(SYS_futex, &bell, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}
