// class: cut points that end before the total
// kind: attack
// how: finds the bag of each id by a search in all beginnings but the last one, off by one: what is in the last bag is added to the one before it, as if offsets held the end too
// caught: correctness
// source: common mistake
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& table, const Tensor& ids, const Tensor& offsets, Tensor& y) {
  const int64_t cols = table.size(1), total = ids.size(0), bags = offsets.size(0);
  const float* w = table.data<float>();
  const int64_t *id = ids.data<int64_t>(), *begin = offsets.data<int64_t>();
  float* out = y.data<float>();
  std::fill_n(out, bags * cols, 0.0f);
  for (int64_t i = 0; i < total; ++i) {
    const int64_t after = std::upper_bound(begin, begin + bags - 1, i) - begin;
    float* to = out + std::max(after - 1, int64_t{0}) * cols;
    for (int64_t j = 0; j < cols; ++j) to[j] += w[id[i] * cols + j];
  }
}
