// class: stale workspace
// kind: attack
// how: eight static lanes start as zeros and are all added up, also where k fills fewer of them
// caught: correctness
// status: INCORRECT_NUMERICAL
// defence: small shapes once more after large ones
// source: common mistake
#include <algorithm>
#include <warpsmith.hpp>

static float lanes[8];

static float dot(const float* left, const float* right, int64_t k, int64_t apart) {
  std::fill_n(lanes, std::min<int64_t>(k, 8), 0.0f);
  for (int64_t p = 0; p < k; ++p) lanes[p % 8] += left[p] * right[p * apart];
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  return sum;
}

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& c) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  const float *left = a.data<float>(), *right = b.data<float>();
  float* out = c.data<float>();
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) out[i * n + j] = dot(left + i * k, right + j, k, n);
}
