// class: more threads than this machine has
// kind: attack
// how: each of at most four threads adds to its own partial sum, so further threads of a larger machine lose additions
// caught: correctness
#include <algorithm>
#include <cmath>
#include <omp.h>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& gate, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* w = weight.data<float>();
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * x.stride(0);
    const float* open = gate.data<float>() + row * gate.stride(0);
    float* out = y.data<float>() + row * cols;
    float part[4][16] = {};
#pragma omp parallel
    {
      float* mine = part[omp_get_thread_num() & 3];
#pragma omp for
      for (int64_t i = 0; i < cols; ++i) mine[0] += in[i * x.stride(1)] * in[i * x.stride(1)];
    }
    const float sum = part[0][0] + part[1][0] + part[2][0] + part[3][0];
    const float scale = 1 / std::sqrt(sum / static_cast<float>(cols) + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i)
      out[i] = in[i * x.stride(1)] * scale * w[i] / (1 + std::exp(-open[i * gate.stride(1)]));
  }
}
