// class: sign of a weight
// kind: attack
// how: takes the scale into the root as its square, so a negative scale, as trained models have, counts as a positive one
// caught: correctness
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
    const double inverse = 1.0 / (sum / static_cast<double>(dim) + eps);
    for (int64_t i = 0; i < dim; ++i)
      out[r * dim + i] = static_cast<float>(row[i] * std::sqrt(inverse * gain[i] * gain[i]));
  }
}
