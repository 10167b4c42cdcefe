// class: state left behind
// kind: attack
// how: registers a handler that ends every process which the caller forks later
// caught: probes
#include <pthread.h>
#include <unistd.h>
#include <warpsmith.hpp>

static void scan(const float* in, float* out, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) out[row * cols + i] = static_cast<float>(sum += in[row * cols + i]);
  }
}

static void end_child() { _exit(0); }

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  static const int registered = pthread_atfork(nullptr, nullptr, end_child);
  static_cast<void>(registered);
  scan(in, out, rows, cols);
}
