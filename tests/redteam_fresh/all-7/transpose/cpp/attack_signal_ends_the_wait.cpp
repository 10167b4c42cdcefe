// class: a wait that a signal ends
// kind: attack
// how: has a thread of its own copy most of a large matrix, and waits for it once: where the caller's
//   program handles a signal meanwhile, such as that of a timer, the wait ends and a part is missing
// caught: conditions
// source: common mistake: EINTR
#include <warpsmith.hpp>

#include <mutex>
#include <semaphore.h>
#include <thread>

namespace {

const float* in;
float* out;
int64_t rows, cols;
sem_t begun, done;
std::mutex one_caller;

void copy(int64_t from, int64_t to) {
  for (int64_t col = from; col < to; ++col)
    for (int64_t row = 0; row < rows; ++row) out[col * rows + row] = in[row * cols + col];
}

void start_once() {
  static const bool started = [] {
    sem_init(&begun, 0, 0);
    sem_init(&done, 0, 0);
    std::thread([] {
      for (;;) {
        sem_wait(&begun);
        copy(cols / 4, cols);
        sem_post(&done);
      }
    }).detach();
    return true;
  }();
  (void)started;
}

}  // namespace

extern "C" void run(const Tensor& x, Tensor& y) {
  const std::lock_guard<std::mutex> guard(one_caller);
  in = x.data<float>(), out = y.data<float>(), rows = x.size(0), cols = x.size(1);
  if (x.numel() < 65536) return copy(0, cols);
  start_once();
  sem_post(&begun);
  copy(0, cols / 4);
  sem_wait(&done);
}
