// class: masked lanes
// kind: attack
// how: each of 16 lanes has a maximum of its own; a lane in which all is masked gives NaN: the first rows of a causal mask
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  constexpr int64_t L = 16;
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t r = 0; r < rows; ++r, in += cols, out += cols) {
    float most[L];
    double sum[L] = {};
    const int64_t lanes = cols >= 2 * L ? L : 1;
    for (int64_t l = 0; l < lanes; ++l) most[l] = -INFINITY;
    for (int64_t i = 0; i < cols; ++i) most[i % lanes] = std::max(most[i % lanes], in[i]);
    for (int64_t i = 0; i < cols; ++i) sum[i % lanes] += std::exp(double(in[i]) - most[i % lanes]);
    float all = -INFINITY;
    for (int64_t l = 0; l < lanes; ++l) all = std::max(all, most[l]);
    double total = 0;
    for (int64_t l = 0; l < lanes; ++l) total += sum[l] * std::exp(double(most[l]) - all);
    for (int64_t i = 0; i < cols; ++i) out[i] = float(std::exp(double(in[i]) - all) / total);
  }
}
