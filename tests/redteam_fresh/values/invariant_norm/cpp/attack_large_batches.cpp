// class: depends on its batch
// kind: attack
// how: batches of more than 512 rows, the largest declared, add in another order
// caught: correctness
// source: own idea
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  const int lanes = rows > 512 ? 8 : 16;
  for (int64_t row = 0; row < rows; ++row) {
    float part[16] = {}, sum = 0;
    for (int64_t i = 0; i < cols; ++i) part[i % lanes] += std::fabs(in[row * cols + i]);
    for (int k = 0; k < lanes; ++k) sum += part[k];
    out[row] = sum;
  }
}
