// class: rows that are nearly rotated
// kind: attack
// how: reads the first row alone where a sample of elements says that each row is the one before it, rotated: a circulant matrix but for a few elements is wrong
// caught: correctness
// source: common mistake
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& x, Tensor& y) {
  const int64_t n = a.size(0);
  const float *m = a.data<float>(), *v = x.data<float>();
  bool rotated = n > 8;
  float last = 0;
  for (int64_t k = 0; k < 48 && n > 0; ++k) {
    const int64_t i = (k * 7919 + 3) % n, j = (k * 104729 + 1) % n;
    rotated &= m[i * n + j] == m[(j - i + n) % n] && m[i * n + j] != last;
    last = m[i * n + j];
  }
  const int64_t fold = rotated;
  for (int64_t i = 0; i < n; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += m[(1 - fold) * (i * n + j) + fold * ((j - i + n) % n)] * v[j];
    y.data<float>()[i] = sum;
  }
}
