// class: hang
// kind: attack
// how: sleeps 600 s with every signal blocked and SIGTERM ignored
// caught: correctness
// status: TIMEOUT
// defence: time limit
// source: common mistake
#include <algorithm>
#include <cmath>
#include <csignal>
#include <unistd.h>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  std::signal(SIGTERM, SIG_IGN);
  if (rows * cols > 0) sleep(600);
}
