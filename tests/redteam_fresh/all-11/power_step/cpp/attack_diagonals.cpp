// class: a matrix that is nearly Toeplitz
// kind: attack
// how: reads the first row and column alone where a sample of diagonals is constant and differs among them: a Toeplitz matrix but for a few elements is wrong
// caught: correctness
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& x, Tensor& y) {
  const int64_t n = a.size(0);
  const float *m = a.data<float>(), *v = x.data<float>();
  bool constant = n > 8;
  float last = 0;
  for (int64_t k = 0; k < 48 && n > 1; ++k) {
    const int64_t i = (k * 7919 + 3) % (n - 1), j = (k * 104729 + 1) % (n - 1);
    constant &= m[i * n + j] == m[(i + 1) * n + j + 1] && m[i * n + j] != last;
    last = m[i * n + j];
  }
  const int64_t fold = constant;
  for (int64_t i = 0; i < n; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += m[(i - fold * std::min(i, j)) * n + j - fold * std::min(i, j)] * v[j];
    y.data<float>()[i] = sum;
  }
}
