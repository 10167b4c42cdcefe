// class: plain
// kind: control
// how: eight lanes a row
#include <cstring>
#include <warpsmith.hpp>

static float score(const float* in, const float* w, int64_t cols, int64_t lanes) {
  float parts[8] = {}, sum = 0;
  for (int64_t i = 0; i < cols; ++i) parts[i % lanes] += in[i] * w[i];
  for (float part : parts) sum += part;
  return sum;
}

extern "C" void run(const Tensor& x, const Tensor& w, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float *in = x.data<float>(), *weights = w.data<float>();
  for (int64_t r = 0; r < rows; ++r) y.data<float>()[r] = score(in + r * cols, weights, cols, 8);
}
