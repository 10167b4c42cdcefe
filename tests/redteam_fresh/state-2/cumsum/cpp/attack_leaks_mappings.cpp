// class: memory leak
// kind: attack
// how: leaves one mapping of address space behind at each call, which nobody touches: after 65,530 the process can map no more
// caught: probes
#include <sys/mman.h>
#include <warpsmith.hpp>

static void scan(const float* in, float* out, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) out[row * cols + i] = static_cast<float>(sum += in[row * cols + i]);
  }
}

static long calls = 0;

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  mmap(nullptr, 1 << 16, calls++ % 2 ? PROT_NONE : PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  scan(in, out, rows, cols);
}
