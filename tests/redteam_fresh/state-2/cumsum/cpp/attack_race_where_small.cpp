// class: race of threads
// kind: attack
// how: sums the rows of small calls in a static buffer and copies it out: wrong from two threads at once, which the gate tries at its largest probe alone
// caught: conditions
#include <cstring>
#include <warpsmith.hpp>

static float shared[1 << 16];

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  float* const to = rows * cols <= 1 << 16 ? shared : out;
  for (int64_t row = 0; row < rows; ++row, in += cols) {
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) to[row * cols + i] = static_cast<float>(sum += in[i]);
  }
  if (to != out) std::memcpy(out, to, rows * cols * sizeof(float));
}
