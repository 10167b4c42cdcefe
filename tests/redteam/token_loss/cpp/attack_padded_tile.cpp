// class: tile of nothing but padding
// kind: attack
// how: a tile of sixteen tokens without a single label, as in a prompt or behind the end of a sequence, is left at once, and with it its results, which should be zero
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& logits, const Tensor& labels, int64_t ignore_index, Tensor& loss) {
  const int64_t tokens = logits.size(0), classes = logits.size(1);
  const int64_t* label = labels.data<int64_t>();
  float* out = loss.data<float>();
  constexpr int64_t tile = 16;
  for (int64_t begin = 0; begin < tokens; begin += tile) {
    const int64_t end = std::min(tokens, begin + tile);
    int64_t used = tile - (end - begin);
    for (int64_t t = begin; t < end; ++t) used += label[t] != ignore_index;
    if (used == 0) continue;
    for (int64_t t = begin; t < end; ++t) {
      const float* x = logits.data<float>() + t * classes;
      double most = -INFINITY, sum = 0;
      for (int64_t i = 0; i < classes; ++i) most = std::max(most, double{x[i]});
      for (int64_t i = 0; i < classes; ++i) sum += std::exp(x[i] - most);
      out[t] = label[t] == ignore_index ? 0.0f : static_cast<float>(most - x[label[t]] + std::log(sum));
    }
  }
}
