// class: infinity as a mask
// kind: attack
// how: a lane all of whose values are infinite has the least value of its type, below infinity, so that beside large values its empty sum is weighed with infinity: zero by infinity is NaN
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

static constexpr int64_t LANES = 8;

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t row = 0; row < rows; ++row, in += cols, out += cols) {
    float least[LANES], sums[LANES] = {};
    std::fill_n(least, LANES, INFINITY);
    for (int64_t i = 0; i < cols; ++i) least[i % LANES] = std::min(least[i % LANES], in[i]);
    for (int64_t i = 0; i < cols; ++i)
      sums[i % LANES] += in[i] == INFINITY ? 0 : std::exp(least[i % LANES] - in[i]);
    const float all = *std::min_element(least, least + LANES);
    float sum = 0;
    for (int64_t lane = 0; lane < LANES; ++lane)
      sum += sums[lane] * std::exp(all - (least[lane] == INFINITY ? 0 : least[lane]));
    for (int64_t i = 0; i < cols; ++i) out[i] = std::exp(all - in[i]) / sum;
  }
}
