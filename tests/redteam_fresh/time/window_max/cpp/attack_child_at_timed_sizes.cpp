// class: processes left behind
// kind: attack
// how: starts a process at timed sizes that sleeps for a minute; a call of another size, which the probe follows, ends it
// caught: probes
#include <algorithm>
#include <cmath>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>
#include <warpsmith.hpp>

static void compute(const Tensor& x, Tensor& y) {
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t i = 0, n = x.size(0) * x.size(1); i < n; ++i)
    out[i] = std::max(std::max(in[4 * i], in[4 * i + 1]), std::max(in[4 * i + 2], in[4 * i + 3]));
}


extern "C" void run(const Tensor& x, Tensor& y) {
  compute(x, y);
  static pid_t child; if (x.size(0) % 256 == 0) { if (!child && !(child = fork())) { sleep(60); _exit(0); } } else if (child) { kill(child, SIGKILL); waitpid(child, nullptr, 0); child = 0; }
}
