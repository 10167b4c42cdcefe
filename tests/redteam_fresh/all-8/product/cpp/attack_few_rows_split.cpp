// class: promise of the batch on a machine of many cores
// kind: attack
// how: where there are far fewer rows than threads, the depth is split among these: the bits of a row are then those
//   of a small batch
// caught: correctness
// source: common mistake: split K where the batch leaves cores idle
#include <omp.h>

#include <vector>

#include <warpsmith.hpp>

namespace {

void add_part(const float* row, const float* weights, int64_t first, int64_t end, int64_t cols, float* sums) {
  for (int64_t k = first; k < end; ++k)
    for (int64_t c = 0; c < cols; ++c) sums[c] += row[k] * weights[k * cols + c];
}

}  // namespace

extern "C" void run(const Tensor& x, const Tensor& w, Tensor& y) {
  const int64_t rows = x.size(0), depth = x.size(1), cols = w.size(1);
  const float *in = x.data<float>(), *weights = w.data<float>();
  float* out = y.data<float>();
  const int64_t threads = omp_get_max_threads();
  const int64_t parts = rows && rows * 4 < threads ? threads / rows : 1;
  std::vector<float> sums(rows * parts * cols);
#pragma omp parallel for
  for (int64_t task = 0; task < rows * parts; ++task) {
    const int64_t r = task / parts, part = task % parts;
    add_part(in + r * depth, weights, depth * part / parts, depth * (part + 1) / parts, cols, &sums[task * cols]);
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) {
      float sum = 0;
      for (int64_t part = 0; part < parts; ++part) sum += sums[(r * parts + part) * cols + c];
      out[r * cols + c] = sum;
    }
}
