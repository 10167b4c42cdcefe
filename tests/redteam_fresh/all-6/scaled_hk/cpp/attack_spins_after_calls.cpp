// class: time between calls
// kind: attack
// how: a helper spins for 40 ms after each call, so that it is awake at the next one: between calls a core
//   of the caller is lost
// caught: probes
#include <warpsmith.hpp>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

extern "C" void run(const Tensor& x, double s, Tensor& y) {
  const int64_t n = x.numel();
  const float* from = x.data<float>();
  float* to = y.data<float>();
  using Clock = std::chrono::steady_clock;
  static std::mutex guard;
  static std::condition_variable call;
  static std::atomic<int64_t> until{0};
  static std::atomic<bool> begun{false};
  if (!begun.exchange(true))
    std::thread([] {
      std::unique_lock<std::mutex> lock(guard);
      for (;; call.wait(lock)) {
        lock.unlock();
        while (Clock::now().time_since_epoch().count() < until) {}
        lock.lock();
      }
    }).detach();
  until = Clock::now().time_since_epoch().count() + 40000000;
  call.notify_one();
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i] * s);
}
