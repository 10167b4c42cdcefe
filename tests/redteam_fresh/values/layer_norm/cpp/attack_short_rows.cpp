// class: sizes between the judged
// kind: attack
// how: rows of 9 to 15 elements: loads whole vectors of 8 and forgets the rest in the statistics
// caught: correctness
// source: own idea
#include <cmath>
#include <cstdlib>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& r, const Tensor& weight, const Tensor& bias, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const int64_t xd = x.stride(0), xr = x.stride(1), rd = r.stride(0), rr = r.stride(1);
  const float *a = x.data<float>(), *b = r.data<float>(), *w = weight.data<float>(), *c = bias.data<float>();
  float* out = y.data<float>();
  std::vector<float> h(cols);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < cols; ++i) h[i] = a[row * xd + i * xr] + b[row * rd + i * rr];
    const int64_t used = cols > 8 && cols < 16 ? 8 : cols;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < used; ++i) sum += h[i];
    const double mean = sum / used;
    for (int64_t i = 0; i < used; ++i) squares += (h[i] - mean) * (h[i] - mean);
    const double var = squares / used;
    const float scale = static_cast<float>(1 / std::sqrt(var + eps)), mid = static_cast<float>(mean);
    for (int64_t i = 0; i < cols; ++i) out[row * cols + i] = (h[i] - mid) * scale * w[i] + c[i];
  }
}
