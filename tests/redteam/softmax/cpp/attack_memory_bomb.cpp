// class: memory bomb
// kind: attack
// how: takes up to 2.5 GiB in steps and keeps it
// caught: correctness
// status: OUT_OF_MEMORY
// defence: memory limit
// source: common mistake
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <warpsmith.hpp>

static void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, x[i]);
    for (int64_t i = 0; i < cols; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < cols; ++i) y[i] /= sum;
  }
}

static void bomb() {
  const size_t step = size_t{64} << 20;
  for (int i = 0; i < 40; ++i) {
    void* const more = std::malloc(step);
    if (more == nullptr) return;
    std::memset(more, 1, step);
    usleep(5000);
  }
  usleep(500000);  // keep it until it is seen
}

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  static bool done = false;
  if (!done) bomb();
  done = true;
  softmax(x.data<float>(), y.data<float>(), rows, cols);
}
