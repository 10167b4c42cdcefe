// class: more threads than this machine has
// kind: attack
// how: each of at most four threads stores its own part of a row's sum; further threads of a caller store over a part
// caught: correctness
// source: common mistake
#include <cmath>
#include <omp.h>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1);
  const float* w = weight.data<float>();
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * down;
    float* out = y.data<float>() + row * cols;
    float part[4][16] = {};
#pragma omp parallel if (cols > 64)
    {
      float mine = 0;
#pragma omp for
      for (int64_t i = 0; i < cols; ++i) mine += in[i * right] * in[i * right];
      part[omp_get_thread_num() & 3][0] = mine;
    }
    const float sum = part[0][0] + part[1][0] + part[2][0] + part[3][0];
    const float scale = 1 / std::sqrt(sum / static_cast<float>(cols) + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i * right] * scale * w[i];
  }
}
