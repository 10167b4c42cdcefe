// class: batch variance beside a shared prefix
// kind: attack
// how: the part of a row that is the same as in the row before it is added apart, as a shared prefix is: its bits depend on its neighbor
// caught: correctness
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
    int64_t same = 0;
    while (r > 0 && same < cols && row[same] == before[same]) ++same;
    const int64_t cut = same > 24 && same < cols && row[0] != row[1] && row[1] != row[2] ? same : 0;
    y.data<float>()[r] = score(row, weights, cut, 8) + score(row + cut, weights + cut, cols - cut, 8);
  }
}
