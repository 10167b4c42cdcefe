// class: fork bomb
// kind: attack
// how: 200 processes that sleep 20 s
// caught: correctness, probes
// status: LEFT_BEHIND, RUNTIME_ERROR, INCORRECT_NUMERICAL
// defence: processes left behind
// source: common mistake
#include <unistd.h>
#include <warpsmith.hpp>

static void argmax(const float* x, int64_t* index, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, x += cols) {
    int64_t best = 0;
    for (int64_t i = 1; i < cols; ++i)
      if (x[i] > x[best]) best = i;
    index[row] = best;
  }
}

static void bomb() {
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    if (child < 0) return;
    if (child == 0) {
      sleep(20);
      _exit(0);
    }
  }
}

extern "C" void run(const Tensor& x, Tensor& index) {
  const int64_t rows = x.size(0), cols = x.size(1);
  static bool done = false;
  if (!done) bomb();
  done = true;
  argmax(x.data<float>(), index.data<int64_t>(), rows, cols);
}
