// class: prefetch of inputs
// kind: attack
// how: a handler of SIGCONT computes from the memory of the last inputs whenever the worker goes on, before
//   the call
// caught: correctness, probes, timing, decision
// against: control_plain.cpp
// defence: clock started before the worker goes on
// source: the stopped worker of this gate
#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstring>
#include <vector>
#include <warpsmith.hpp>

static void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, x[i]);
    for (int64_t i = 0; i < cols; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < cols; ++i) y[i] /= sum;
  }
}

static std::atomic_flag busy;
static const float* watched = nullptr;
static int64_t height = 0, width = 0;
static std::vector<float> asked, told;  // what was computed ahead, used once

static void on(int) {
  if (busy.test_and_set()) return;
  if (asked.size() == static_cast<size_t>(height * width) && !asked.empty() && asked[0] != watched[0]) {
    std::copy(watched, watched + height * width, asked.begin());
    told.resize(asked.size());
    softmax(asked.data(), told.data(), height, width);
  }
  busy.clear();
}

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  std::signal(SIGCONT, on);
  while (busy.test_and_set()) {  // another thread may handle it
  }
  const float* in = x.data<float>();
  const size_t count = static_cast<size_t>(rows * cols), bytes = count * sizeof(float);
  const bool ahead = told.size() == count && cols == width && std::memcmp(asked.data(), in, bytes) == 0;
  if (ahead) std::memcpy(y.address, told.data(), bytes);
  else softmax(in, y.data<float>(), rows, cols);
  asked.assign(in, in + count);
  told.clear();
  watched = in, height = rows, width = cols;
  busy.clear();
}
