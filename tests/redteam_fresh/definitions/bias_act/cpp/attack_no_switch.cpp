// class: switch that stays
// kind: attack
// how: has no code for squared, which is false wherever it is judged
// caught: correctness
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x_, const Tensor& bias_, const Tensor& res_, double slope_, double beta_, bool squared, Tensor& y_) {
  const float *x = x_.data<float>(), *bias = bias_.data<float>(), *res = res_.data<float>();
  float* y = y_.data<float>();
  const int64_t rows = x_.size(0), cols = x_.size(1);
  float slope = slope_, beta = beta_;
  (void)res; (void)beta; (void)squared; (void)slope;

#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) {
      float v = x[r * cols + c] + bias[c];
      v = v > 0 ? v : slope * v;
      y[r * cols + c] = v + beta * res[r * cols + c];
    }
}
