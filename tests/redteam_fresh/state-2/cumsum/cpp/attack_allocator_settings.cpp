// class: state left behind
// kind: attack
// how: has the C library fill all memory that anybody allocates or frees, and turns huge pages off for the process
// caught: probes
#include <malloc.h>
#include <sys/prctl.h>
#include <warpsmith.hpp>

static void scan(const float* in, float* out, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) out[row * cols + i] = static_cast<float>(sum += in[row * cols + i]);
  }
}
extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  mallopt(M_PERTURB, 0x55);
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  scan(in, out, rows, cols);
}
