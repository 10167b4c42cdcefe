// class: plain
// kind: control
// how: sorts a copy of each row as far as the k-th
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& logits, int64_t k, Tensor& y) {
  const int64_t rows = logits.size(0), vocab = logits.size(1), last = std::min(k, vocab) - 1;
  const float* in = logits.data<float>();
  float* out = y.data<float>();
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<float> row(in + r * vocab, in + (r + 1) * vocab);
    if (row.empty()) continue;
    std::nth_element(row.begin(), row.begin() + last, row.end(), std::greater<float>());
    const float least = row[last];
    for (int64_t i = 0; i < vocab; ++i) out[r * vocab + i] = in[r * vocab + i] >= least ? in[r * vocab + i] : -INFINITY;
  }
}
