// class: teams within teams
// kind: attack
// how: has a parallel loop over features inside of the one over rows that adds to the same row without waiting for others: right as long as teams within teams have one thread, wrong with OMP_NUM_THREADS=4,2 or omp_set_max_active_levels(2)
// caught: correctness
// source: common mistake
#include <algorithm>
#include <warpsmith.hpp>

static void add_products(const float* in, int64_t step, const float* factors, float* to, int64_t k, int64_t cols) {
#pragma omp parallel for schedule(static)
  for (int64_t p = 0; p < k; ++p) {
    const float factor = in[p * step];
    for (int64_t j = 0; j < cols; ++j) to[j] += factor * factors[p * cols + j];
  }
}

extern "C" void run(const Tensor& x, const Tensor& w, const Tensor& bias, Tensor& y) {
  const int64_t rows = x.size(0), k = x.size(1), cols = w.size(1), down = x.stride(0), right = x.stride(1);
  const float *in = x.data<float>(), *factors = w.data<float>(), *added = bias.data<float>();
  float* out = y.data<float>();
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(added, cols, out + r * cols);
    add_products(in + r * down, right, factors, out + r * cols, k, cols);
  }
}
