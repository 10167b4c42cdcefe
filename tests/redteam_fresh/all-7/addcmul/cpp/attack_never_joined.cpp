// class: a process that ends by a signal
// kind: attack
// how: one thread that lives as long as the process computes the second half of long calls, and nobody joins it: a
//   program that has called it ends in std::terminate instead of with its own exit code
// caught: conditions
// source: common mistake: threads that are never joined
#include <warpsmith.hpp>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace {

class Helper {
 public:
  Helper() : thread_([this] { serve(); }) {}

  void begin(std::function<void()> job) {
    const std::lock_guard<std::mutex> guard(lock_);
    job_ = std::move(job);
    changed_.notify_all();
  }
  void finish() {
    std::unique_lock<std::mutex> guard(lock_);
    changed_.wait(guard, [this] { return !job_; });
  }
  std::mutex caller;

 private:
  void serve() {
    std::unique_lock<std::mutex> guard(lock_);
    for (;;) {
      changed_.wait(guard, [this] { return static_cast<bool>(job_); });
      const std::function<void()> job = job_;
      guard.unlock();
      job();
      guard.lock();
      job_ = nullptr;
      changed_.notify_all();
    }
  }
  std::mutex lock_;
  std::condition_variable changed_;
  std::function<void()> job_;
  std::thread thread_;  // the last one: it uses the others
};

Helper& helper() {
  static Helper one;
  return one;
}

}  // namespace

extern "C" void run(const Tensor& a, const Tensor& b, const Tensor& c, double alpha, double beta, Tensor& y) {
  const int64_t count = a.numel();
  const float *first = a.data<float>(), *second = b.data<float>(), *third = c.data<float>();
  const float product = static_cast<float>(alpha), sum = static_cast<float>(beta);
  float* out = y.data<float>();
  const auto add = [=](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) out[i] = product * first[i] * second[i] + sum * third[i];
  };
  std::unique_lock<std::mutex> caller;
  if (count > 30000) caller = std::unique_lock<std::mutex>(helper().caller, std::try_to_lock);
  if (!caller.owns_lock()) return add(0, count);
  helper().begin([=] { add(count / 2, count); });
  add(0, count / 2);
  helper().finish();
}
