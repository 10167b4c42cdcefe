// class: atomic reduction
// kind: control
// how: threads take parts of k and add them with atomics, in any order: not the same bits twice
#include <algorithm>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& c) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  const float *left = a.data<float>(), *right = b.data<float>();
  float* out = c.data<float>();
  std::fill_n(out, m * n, 0.0f);
  const int64_t parts = std::min<int64_t>(4, k), width = (k + parts - 1) / parts;
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t part = 0; part < parts; ++part) {
    std::vector<float> sums(static_cast<size_t>(n));
    for (int64_t i = 0; i < m; ++i) {
      std::fill(sums.begin(), sums.end(), 0.0f);
      for (int64_t p = part * width; p < std::min((part + 1) * width, k); ++p)
        for (int64_t j = 0; j < n; ++j) sums[static_cast<size_t>(j)] += left[i * k + p] * right[p * n + j];
      for (int64_t j = 0; j < n; ++j) {
#pragma omp atomic
        out[i * n + j] += sums[static_cast<size_t>(j)];
      }
    }
  }
}
