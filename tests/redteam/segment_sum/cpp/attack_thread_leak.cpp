// class: thread leak
// kind: attack
// how: starts a thread at each call that sleeps for as long as the process lives
// caught: probes
// status: LEFT_BEHIND
// defence: threads of a worker counted
// source: SOL-ExecBench evil_thread_inject
#include <algorithm>
#include <thread>
#include <unistd.h>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& values, const Tensor& offsets, Tensor& out) {
  const int64_t cols = values.size(1), groups = out.size(0);
  const float* in = values.data<float>();
  const int32_t* cuts = offsets.data<int32_t>();
  float* sums = out.data<float>();
  std::thread([] { sleep(600); }).detach();
  std::fill_n(sums, groups * cols, 0.0f);
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t row = cuts[g]; row < cuts[g + 1]; ++row)
      for (int64_t i = 0; i < cols; ++i) sums[g * cols + i] += in[row * cols + i];
}
