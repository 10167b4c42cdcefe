// class: empty batch
// kind: attack
// how: divides the number of logits by that of rows for the vocabulary, so an empty batch ends the process
// caught: correctness
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& logits, int64_t k, Tensor& y) {
  const int64_t rows = logits.size(0), vocab = logits.numel() / rows, last = std::min(k, vocab) - 1;
  const float* in = logits.data<float>();
  float* out = y.data<float>();
  std::vector<float> row(vocab);
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(in + r * vocab, vocab, row.begin());
    std::nth_element(row.begin(), row.begin() + last, row.end(), std::greater<float>());
    const float least = row[last];
    for (int64_t i = 0; i < vocab; ++i) out[r * vocab + i] = in[r * vocab + i] >= least ? in[r * vocab + i] : -INFINITY;
  }
}
