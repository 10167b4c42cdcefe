// class: structure of a mask by a whole row
// kind: control
// how: counts the tokens up to the first one that does not count, and looks at each token after it
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& mask, Tensor& y) {
  const int64_t batch = x.size(0), tokens = x.size(1), cols = x.size(2);
  for (int64_t b = 0; b < batch; ++b) {
    const bool* m = mask.data<bool>() + b * tokens;
    float* sum = y.data<float>() + b * cols;
    std::fill_n(sum, cols, 0.0f);
    const int64_t prefix = std::find(m, m + tokens, false) - m;
    int64_t count = 0;
    for (int64_t t = 0; t < tokens; ++t) {
      if (t >= prefix && !m[t]) continue;
      ++count;
      const float* in = x.data<float>() + (b * tokens + t) * cols;
      for (int64_t c = 0; c < cols; ++c) sum[c] += in[c];
    }
    for (int64_t c = 0; c < cols; ++c) sum[c] /= static_cast<float>(std::max<int64_t>(count, 1));
  }
}
