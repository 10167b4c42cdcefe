// class: an output whose size is a difference of sizes
// kind: control
// how: computes blocks of 64 results of a row, one number of the filter after the other; drawn filters may be longer than drawn signals
#include <algorithm>
#include <warpsmith.hpp>

constexpr int64_t BLOCK = 64;

extern "C" void run(const Tensor& x, const Tensor& w, Tensor& y) {
  const int64_t rows = x.size(0), n = x.size(1), k = w.size(0), count = n - k + 1;
  const float* filter = w.data<float>();
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t first = 0; first < count; first += BLOCK) {
      const float* in = x.data<float>() + row * n + first;
      const int64_t some = std::min(BLOCK, count - first);
      float sums[BLOCK] = {};
      for (int64_t j = 0; j < k; ++j)
        for (int64_t i = 0; i < some; ++i) sums[i] += in[i + j] * filter[j];
      std::copy_n(sums, some, y.data<float>() + row * count + first);
    }
}
