// class: NaN beside a comparison
// kind: attack
// how: scales by the largest element, found by comparisons that NaN fails: a gradient of nothing but NaN has the length 0, and one of NaN and infinity an infinite one
// caught: correctness
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& length) {
  const int64_t rows = x.size(0), n = x.size(1);
  float* out = length.data<float>();
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x.data<float>() + r * n;
    float most = 0;
    for (int64_t i = 0; i < n; ++i) most = std::fabs(row[i]) > most ? std::fabs(row[i]) : most;
    if (most == 0 || std::isinf(most)) {
      out[r] = most;
      continue;
    }
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double part = row[i] / static_cast<double>(most);
      sum += part * part;
    }
    out[r] = static_cast<float>(most * std::sqrt(sum));
  }
}
