// class: race of threads
// kind: attack
// how: asks OpenMP for two threads and takes it that they came: half of the rows where the caller is in a parallel loop, or threads are limited
// caught: conditions
#include <algorithm>
#include <cmath>
#include <vector>
#include <omp.h>
#include <warpsmith.hpp>

static void normalize(const float* in, int64_t step, const float* g, const float* b, int64_t cols, double eps,
                      float* out) {
  double sum = 0, square = 0;
  for (int64_t i = 0; i < cols; ++i) sum += in[i * step];
  const double mean = sum / static_cast<double>(cols);
  for (int64_t i = 0; i < cols; ++i) square += (in[i * step] - mean) * (in[i * step] - mean);
  const double scale = 1 / std::sqrt(square / static_cast<double>(cols) + eps);
  for (int64_t i = 0; i < cols; ++i) out[i] = static_cast<float>((in[i * step] - mean) * scale * g[i] + b[i]);
}
extern "C" void run(const Tensor& x, const Tensor& gain, const Tensor& shift, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
#pragma omp parallel num_threads(2)
  for (int64_t row = omp_get_thread_num(); row < rows; row += 2)
    normalize(x.data<float>() + row * x.stride(0), x.stride(1), gain.data<float>(), shift.data<float>(), cols, eps,
              y.data<float>() + row * cols);
}
