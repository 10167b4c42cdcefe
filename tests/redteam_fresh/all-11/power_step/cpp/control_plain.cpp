// class: plain
// kind: control
// how: row by row
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& x, Tensor& y) {
  const int64_t n = a.size(0);
  const float *m = a.data<float>(), *v = x.data<float>();

  for (int64_t i = 0; i < n; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += m[i * n + j] * v[j];
    y.data<float>()[i] = sum;
  }
}
