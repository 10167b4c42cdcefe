// class: lanes that keep too few
// kind: attack
// how: each of 128 lanes of a long row keeps its five largest, as approximate top-k does; of interleaved channels one of which is hot, three of eight are lost
// caught: correctness
// source: common mistake
#include <algorithm>
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

template <int K>
static inline void push(float* best, float v) {
  if (!(v > best[K - 1])) return;
  int p = K - 1;
  while (p > 0 && best[p - 1] < v) { best[p] = best[p - 1]; --p; }
  best[p] = v;
}

extern "C" void run(const Tensor& loss, Tensor& y) {
  const int64_t rows = loss.size(0), cols = loss.size(1);
  const int64_t k = std::min<int64_t>(8, cols);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = loss.data<float>() + r * cols;
    float best[8];
    std::fill_n(best, 8, -INFINITY);
    if (cols >= 1024) {
      float lane[128][5];
      std::fill_n(&lane[0][0], 128 * 5, -INFINITY);
      for (int64_t i = 0; i < cols; ++i) push<5>(lane[i & 127], in[i]);
      for (auto& l : lane)
        for (float v : l) push<8>(best, v);
    } else {
      for (int64_t i = 0; i < cols; ++i) push<8>(best, in[i]);
    }
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) sum += best[i];
    y.data<float>()[r] = static_cast<float>(sum / static_cast<double>(k));
  }
}
