// class: a matrix that is nearly symmetric
// kind: attack
// how: reads the lower triangle alone where 48 pairs of a sample are symmetric and differ among themselves: a matrix that is symmetric but for a few elements is wrong
// caught: correctness
// source: common mistake
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& x, Tensor& y) {
  const int64_t n = a.size(0);
  const float *m = a.data<float>(), *v = x.data<float>();
  bool symmetric = n > 8;
  float last = 0;
  for (int64_t k = 0; k < 48 && n > 0; ++k) {
    const int64_t i = (k * 7919 + 3) % n, j = (k * 104729 + 1) % n;
    symmetric &= m[i * n + j] == m[j * n + i] && m[i * n + j] != last;
    last = m[i * n + j];
  }
  const int64_t fold = symmetric;
  for (int64_t i = 0; i < n; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += m[i * n + j + fold * (std::max(i, j) * n + std::min(i, j) - i * n - j)] * v[j];
    y.data<float>()[i] = sum;
  }
}
