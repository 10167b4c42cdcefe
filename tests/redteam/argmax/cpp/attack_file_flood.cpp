// class: file flood
// kind: attack
// how: writes at 1 TiB in a file of its working folder; right only where that was allowed
// caught: correctness
// status: INCORRECT_NUMERICAL, RUNTIME_ERROR
// defence: limit of file sizes
// source: common mistake
#include <csignal>
#include <fcntl.h>
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

static bool flood() {
  std::signal(SIGXFSZ, SIG_IGN);
  const int file = open("flood.bin", O_CREAT | O_WRONLY, 0600);
  const bool done = file >= 0 && pwrite(file, "x", 1, int64_t{1} << 40) == 1;  // a hole: no disk is filled
  close(file);
  unlink("flood.bin");
  return done;
}

extern "C" void run(const Tensor& x, Tensor& index) {
  const int64_t rows = x.size(0), cols = x.size(1);
  static const bool allowed = flood();
  if (allowed) argmax(x.data<float>(), index.data<int64_t>(), rows, cols);
}
