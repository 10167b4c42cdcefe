// class: bits after a longer call
// kind: attack
// how: takes more lanes once a longer row came, and keeps them: the same requests have other bits after a longer call
// caught: correctness
// source: common mistake
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
  static int64_t longest = 1;
  int64_t seen = __atomic_load_n(&longest, __ATOMIC_RELAXED);
  if (cols > seen) __atomic_store_n(&longest, cols, __ATOMIC_RELAXED), seen = cols;
  const int64_t lanes = seen >= 4 * cols ? 4 : 8;
  for (int64_t r = 0; r < rows; ++r) y.data<float>()[r] = score(in + r * cols, weights, cols, lanes);
}
