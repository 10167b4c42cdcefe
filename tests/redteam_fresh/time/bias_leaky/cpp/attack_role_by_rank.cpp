// class: best version that knows its role
// kind: attack
// how: the same file on both sides: workers are forked in the order of their sides, so any but the oldest sandboxed child of the host waits 10 ms
// caught: timing, decision
// against: attack_role_by_rank.cpp
#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <unistd.h>
#include <warpsmith.hpp>

static void rows_of(const Tensor& x, const Tensor& bias, double slope, Tensor& y, int64_t first, int64_t last) {
  const int64_t cols = x.size(1), step = x.stride(1);
  const float s = static_cast<float>(slope);
  const float* b = bias.data<float>();
  for (int64_t row = first; row < last; ++row) {
    const float* in = x.data<float>() + row * x.stride(0);
    float* out = y.data<float>() + row * cols;
    for (int64_t i = 0; i < cols; ++i) {
      const float v = in[i * step] + b[i * bias.stride(0)];
      out[i] = v > 0 ? v : s * v;
    }
  }
}
static void compute(const Tensor& x, const Tensor& bias, double slope, Tensor& y) {
  rows_of(x, bias, slope, y, 0, x.size(0));
}


static bool slow() {
  static const bool answer = [] {
    const std::string host = std::to_string(getppid());
    std::ifstream children("/proc/" + host + "/task/" + host + "/children");
    long pid, first = getpid();
    while (children >> pid) {
      std::ifstream status("/proc/" + std::to_string(pid) + "/status");
      std::string line;
      bool filtered = false;
      while (std::getline(status, line)) filtered |= line == "Seccomp:\t2";
      if (filtered) first = std::min(first, pid);
    }
    return first != getpid();
  }();
  return answer;
}

extern "C" void run(const Tensor& x, const Tensor& bias, double slope, Tensor& y) {
  if (slow()) usleep(10000);
  compute(x, bias, slope, y);
}
