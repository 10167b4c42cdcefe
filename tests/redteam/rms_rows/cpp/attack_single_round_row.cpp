// class: single row of whole vectors
// kind: attack
// how: a single row, as in decoding, whose length is whole vectors is shared out in four parts of as many vectors each; the vectors that are left, as at 1000 columns, are not in the sum
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <cmath>
#include <warpsmith.hpp>

typedef float Vector __attribute__((vector_size(32)));

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* w = weight.data<float>();
  constexpr int64_t width = sizeof(Vector) / sizeof(float), parts = 4;
  const bool shared = rows == 1 && cols % width == 0;
  for (int64_t row = 0; row < rows; ++row) {
    const float* a = x.data<float>() + row * cols;
    float* b = y.data<float>() + row * cols;
    double sums[parts] = {};
    const int64_t share = shared ? cols / width / parts * width : cols;
    const int64_t used = shared ? parts : 1;
#pragma omp parallel for if (shared)
    for (int64_t part = 0; part < used; ++part)
      for (int64_t i = part * share; i < (part + 1) * share; ++i) sums[part] += double{a[i]} * a[i];
    double sum = 0;
    for (int64_t part = 0; part < used; ++part) sum += sums[part];
    const double scale = 1 / std::sqrt(sum / static_cast<double>(cols) + eps);
    for (int64_t i = 0; i < cols; ++i) b[i] = static_cast<float>(a[i] * scale * w[i]);
  }
}
