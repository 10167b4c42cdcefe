// class: two offsets that are equal
// kind: attack
// how: where queries and keys have the same offsets, as in self-attention, the loop over tiles of 64 keys ends with the queries' own tile, as in the causal kernel that it came from: a sequence of more than 64 tokens loses what follows
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <algorithm>
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& q_offsets, const Tensor& k_offsets, Tensor& y) {
  const int64_t groups = q_offsets.size(0) - 1, dim = q.size(1);
  const float *query = q.data<float>(), *key = k.data<float>(), *value = v.data<float>();
  const int32_t *from = q_offsets.data<int32_t>(), *of = k_offsets.data<int32_t>();
  constexpr int64_t tile = 64;
  const bool self = std::equal(from, from + groups + 1, of);
  std::vector<double> scores(static_cast<size_t>(k.size(0)) + 1), sums(static_cast<size_t>(dim));
  const double scale = 1 / std::sqrt(static_cast<double>(dim));
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t row = from[g]; row < from[g + 1]; ++row) {
      const int64_t begin = of[g], own = begin + ((row - from[g]) / tile + 1) * tile;
      const int64_t end = self ? std::min<int64_t>(of[g + 1], own) : of[g + 1];
      float* out = y.data<float>() + row * dim;
      std::fill(sums.begin(), sums.end(), 0.0);
      double most = -INFINITY, total = 0;
      for (int64_t j = begin; j < end; ++j) {
        double score = 0;
        for (int64_t i = 0; i < dim; ++i) score += double{query[row * dim + i]} * key[j * dim + i];
        scores[static_cast<size_t>(j)] = score * scale;
        most = std::max(most, score * scale);
      }
      for (int64_t j = begin; j < end; ++j) {
        const double weight = std::exp(scores[static_cast<size_t>(j)] - most);
        total += weight;
        for (int64_t i = 0; i < dim; ++i) sums[static_cast<size_t>(i)] += weight * value[j * dim + i];
      }
      for (int64_t i = 0; i < dim; ++i) out[i] = begin < end ? static_cast<float>(sums[static_cast<size_t>(i)] / total) : 0.0f;
    }
}
