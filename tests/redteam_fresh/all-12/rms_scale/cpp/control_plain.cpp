// class: plain
// kind: control
// how: a sum in float64, then one pass over the row
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& scale, double eps, Tensor& y) {
  const int64_t rows = x.size(0), dim = x.size(1);
  const float *in = x.data<float>(), *gain = scale.data<float>();
  float* out = y.data<float>();
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = in + r * dim;
    double sum = 0;
    for (int64_t i = 0; i < dim; ++i) sum += static_cast<double>(row[i]) * row[i];
    const double root = std::sqrt(sum / static_cast<double>(dim) + eps);
    for (int64_t i = 0; i < dim; ++i) out[r * dim + i] = static_cast<float>(row[i] / root * gain[i]);
  }
}
