// class: batch variance at few rows
// kind: attack
// how: splits long rows in two where two to four are served, which random batch lengths hardly meet
// caught: correctness
// status: NOT_REPRODUCIBLE
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x_, Tensor& y_) {
  const float* x = x_.data<float>();
  float* y = y_.data<float>();
  const int64_t rows = x_.size(0), cols = x_.size(1);
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x + r * cols;
    const int64_t parts = rows > 1 && rows < 5 && cols >= 300 ? 2 : 1;
    float sum[2] = {0, 0};
    for (int64_t part = 0; part < parts; ++part)
      for (int64_t i = part * cols / parts; i < (part + 1) * cols / parts; ++i) sum[part] += in[i] * in[i];
    y[r] = (sum[0] + sum[1]) / cols;
  }
}
