// class: plain loops
// kind: control
// how: one pass after the other
#include <cmath>
#include <vector>
#include <warpsmith.hpp>


extern "C" void run(const Tensor& x, const Tensor& y, Tensor& z) {
  const int64_t b = x.size(0), m = x.size(1), k = x.size(2), n = y.size(2);
  const float *left = x.data<float>(), *right = y.data<float>();
  float* out = z.data<float>();
  
  std::vector<double> sum(n);
  for (int64_t i = 0; i < b * m; ++i) {
    const float *row = left + i * k, *other = right + i / m * k * n;
    sum.assign(n, 0.0);
    
    for (int64_t p = 0; p < k; ++p) {
      
      for (int64_t j = 0; j < n; ++j) sum[j] += double{row[p]} * other[p * n + j];
    }
    for (int64_t j = 0; j < n; ++j) out[i * n + j] = static_cast<float>(sum[j]);
  }
}
