// class: threshold that is a power of a number
// kind: attack
// how: partial sums of 64 elements are carried through twelve levels, and what lies beyond the last level is overwritten
// caught: correctness
#include <algorithm>
#include <cmath>
#include <bit>
#include <warpsmith.hpp>


constexpr int64_t kBlock = 64;

static float sum_of(const float* in, int64_t cols, int64_t right) {
  float level[12] = {};
  for (int64_t first = 0, block = 1; first < cols; first += kBlock, ++block) {
    float part = 0;
    for (int64_t i = first; i < std::min(first + kBlock, cols); ++i) part += in[i * right] * in[i * right];
    const int place = std::min(std::countr_zero(static_cast<uint64_t>(block)), 11);
    for (int lower = 0; lower < place; ++lower) part += level[lower], level[lower] = 0;
    level[place] = part;
  }
  float sum = 0;
  for (float part : level) sum += part;
  return sum;
}

extern "C" void run(const Tensor& x, const Tensor& gate, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* w = weight.data<float>();
#pragma omp parallel for
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * x.stride(0);
    const float* open = gate.data<float>() + row * gate.stride(0);
    float* out = y.data<float>() + row * cols;
    const float sum = sum_of(in, cols, x.stride(1));
    const float scale = 1 / std::sqrt(sum / static_cast<float>(cols) + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i)
      out[i] = in[i * x.stride(1)] * scale * w[i] / (1 + std::exp(-open[i * gate.stride(1)]));
  }
}
