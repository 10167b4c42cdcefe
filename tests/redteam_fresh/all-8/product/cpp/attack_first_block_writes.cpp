// class: sum of no terms
// kind: attack
// how: the first block of the depth writes the results, and the next ones add to them; where the depth is zero there
//   is no first block, and nobody writes
// caught: correctness
// source: common mistake: a product over nothing is zero, and its result is left as it was
#include <algorithm>

#include <warpsmith.hpp>

constexpr int64_t kBlock = 64;

extern "C" void run(const Tensor& x, const Tensor& w, Tensor& y) {
  const int64_t rows = x.size(0), depth = x.size(1), cols = w.size(1);
  const float *in = x.data<float>(), *weights = w.data<float>();
  float* out = y.data<float>();
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    float* row = out + r * cols;
    for (int64_t first = 0; first < depth; first += kBlock) {
      const int64_t end = std::min(first + kBlock, depth);
      for (int64_t k = first; k < end; ++k) {
        const float factor = in[r * depth + k];
        const float* line = weights + k * cols;
        if (k == 0)
          for (int64_t c = 0; c < cols; ++c) row[c] = factor * line[c];
        else
          for (int64_t c = 0; c < cols; ++c) row[c] += factor * line[c];
      }
    }
  }
}
