// class: a shape that is ragged along one axis
// kind: attack
// how: where a row of results is whole tiles, leaves out the rows behind the last whole tile of rows: it meets tails along both axes, or along none
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <algorithm>
#include <warpsmith.hpp>

static constexpr int64_t TILE = 32;

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& c) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  const float *left = a.data<float>(), *right = b.data<float>();
  float* out = c.data<float>();
  std::fill_n(out, m * n, 0.0f);
  const bool is_tiled = n % TILE == 0 && k % TILE == 0 && m > TILE;
  const int64_t rows = is_tiled ? m / TILE * TILE : m;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j) out[i * n + j] += left[i * k + p] * right[p * n + j];
}
