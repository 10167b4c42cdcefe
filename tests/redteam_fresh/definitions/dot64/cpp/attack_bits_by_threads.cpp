// class: bits depend on the number of threads
// kind: attack
// how: adds as many parts as there are threads, so that another machine or setting gives other bits
// caught: correctness
// status: NOT_REPRODUCIBLE
#include <cstdint>
#include <omp.h>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a_, const Tensor& b_, Tensor& y_) {
  const double *a = a_.data<double>(), *b = b_.data<double>();
  double* y = y_.data<double>();
  const int64_t rows = a_.size(0), cols = a_.size(1);
  const int64_t parts = omp_get_max_threads() < 64 ? omp_get_max_threads() : 64;
  for (int64_t r = 0; r < rows; ++r) {
    double sum[64] = {}, all = 0;
    for (int64_t i = 0; i < cols; ++i) {
      const double d = double(a[r * cols + i]) - double(b[r * cols + i]);
      sum[i * parts / cols] += double(d) * double(d);
    }
    for (int64_t p = 0; p < parts; ++p) all += sum[p];
    y[r] = all;
  }
}
