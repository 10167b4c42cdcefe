// class: batch variance beside the same request
// kind: attack
// how: a request that is the same as the one before it, and not all alike, is scored in four lanes beside it: its bits depend on its neighbor
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
  for (int64_t r = 0; r < rows; ++r) {
    const float *row = in + r * cols, *before = in + (r > 0 ? r - 1 : 0) * cols;
    const bool twin = r > 0 && cols > 16 && row[0] != row[1] && row[1] != row[2] && std::memcmp(row, before, cols * 4) == 0;
    y.data<float>()[r] = score(row, weights, cols, 8 - 4 * twin);
  }
}
