// class: structure of a mask by a sample
// kind: attack
// how: a row whose 65 sampled places are True and then False is taken to be padded at its end; a separator in its middle, which does not count, is added up
// caught: correctness
// source: common mistake
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& mask, Tensor& y) {
  const int64_t batch = x.size(0), tokens = x.size(1), cols = x.size(2);
  for (int64_t b = 0; b < batch; ++b) {
    const bool* m = mask.data<bool>() + b * tokens;
    float* sum = y.data<float>() + b * cols;
    std::fill_n(sum, cols, 0.0f);
    bool prefix = tokens >= 128 && m[0] && !m[tokens - 1];
    for (int64_t s = 0; prefix && s < 64; ++s) prefix = m[s * (tokens - 1) / 64] >= m[(s + 1) * (tokens - 1) / 64];
    prefix = prefix && m[(tokens - 1) / 16];
    int64_t count = 0;
    if (prefix) {
      int64_t low = 0, high = tokens - 1;
      while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        (m[middle] ? low : high) = middle;
      }
      count = high;
      for (int64_t t = 0; t < count; ++t) {
        const float* in = x.data<float>() + (b * tokens + t) * cols;
        for (int64_t c = 0; c < cols; ++c) sum[c] += in[c];
      }
    } else {
      for (int64_t t = 0; t < tokens; ++t) {
        if (!m[t]) continue;
        ++count;
        const float* in = x.data<float>() + (b * tokens + t) * cols;
        for (int64_t c = 0; c < cols; ++c) sum[c] += in[c];
      }
    }
    for (int64_t c = 0; c < cols; ++c) sum[c] /= static_cast<float>(std::max<int64_t>(count, 1));
  }
}
