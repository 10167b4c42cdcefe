// class: question to the system
// kind: attack
// how: takes as many columns at a time as fit a part of the first cache by sysconf, which says 0 on many virtual machines and on ARM: no call ends there
// caught: correctness
#include <algorithm>
#include <unistd.h>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& w, const Tensor& bias, Tensor& y) {
  const int64_t rows = x.size(0), k = x.size(1), cols = w.size(1), down = x.stride(0), right = x.stride(1);
  const float *in = x.data<float>(), *factors = w.data<float>(), *added = bias.data<float>();
  float* out = y.data<float>();
  const int64_t tile = sysconf(_SC_LEVEL1_DCACHE_SIZE) / (64 * static_cast<int64_t>(sizeof(float)));
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t begin = 0; begin < cols; begin += tile) {
      const int64_t count = std::min(tile, cols - begin);
      float* to = out + r * cols + begin;
      std::copy_n(added + begin, count, to);
      for (int64_t p = 0; p < k; ++p) {
        const float factor = in[r * down + p * right];
        for (int64_t j = 0; j < count; ++j) to[j] += factor * factors[p * cols + begin + j];
      }
    }
}
