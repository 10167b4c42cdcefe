// class: range of values
// kind: attack
// how: splits each factor into three float16 parts, without a scale: factors beyond 65504 become infinite, and those below 1e-11 zero
// caught: correctness
// source: own idea
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

static float parts(float v) {
  const float16 high = static_cast<float16>(v);
  const float16 middle = static_cast<float16>((v - static_cast<float>(high)) * 2048.0f);
  const float rest = v - static_cast<float>(high) - static_cast<float>(middle) / 2048.0f;
  const float16 low = static_cast<float16>(rest * 4194304.0f);
  return static_cast<float>(high) + static_cast<float>(middle) / 2048.0f + static_cast<float>(low) / 4194304.0f;
}

extern "C" void run(const Tensor& x, const Tensor& y, Tensor& z) {
  const int64_t b = x.size(0), m = x.size(1), k = x.size(2), n = y.size(2);
  const float *left = x.data<float>(), *right = y.data<float>();
  float* out = z.data<float>();
  std::vector<float> copy(b * k * n);
  for (int64_t p = 0; p < b * k * n; ++p) copy[p] = parts(right[p]);
  right = copy.data();
  std::vector<double> sum(n);
  for (int64_t i = 0; i < b * m; ++i) {
    const float *row = left + i * k, *other = right + i / m * k * n;
    sum.assign(n, 0.0);
    
    for (int64_t p = 0; p < k; ++p) {
      
      for (int64_t j = 0; j < n; ++j) sum[j] += double{parts(row[p])} * other[p * n + j];
    }
    for (int64_t j = 0; j < n; ++j) out[i * n + j] = static_cast<float>(sum[j]);
  }
}
