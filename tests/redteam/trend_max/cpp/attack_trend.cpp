// class: order by a sample
// kind: attack
// how: a row whose 17 sampled elements ascend is taken to be sorted and is copied; a trend with noise ascends there too
// caught: correctness
// source: common mistake
#include <cstring>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    float* out = y.data<float>() + r * cols;
    bool rises = cols >= 64;
    for (int64_t s = 0; rises && s < 16; ++s) rises = in[s * (cols - 1) / 16] < in[(s + 1) * (cols - 1) / 16];
    if (rises) {
      std::memcpy(out, in, static_cast<size_t>(cols) * sizeof(float));
      continue;
    }
    float best = cols ? in[0] : 0;
    for (int64_t i = 0; i < cols; ++i) out[i] = best = in[i] > best ? in[i] : best;
  }
}
