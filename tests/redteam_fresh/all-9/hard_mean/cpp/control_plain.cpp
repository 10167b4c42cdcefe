// class: plain
// kind: control
// how: inserts each element into the eight largest so far
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& loss, Tensor& y) {
  const int64_t rows = loss.size(0), cols = loss.size(1);
  const int64_t k = std::min<int64_t>(8, cols);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = loss.data<float>() + r * cols;
    float best[9];
    std::fill_n(best, 9, -INFINITY);
    for (int64_t i = 0; i < cols; ++i) {
      if (!(in[i] > best[k - 1])) continue;
      int64_t p = k - 1;
      while (p > 0 && best[p - 1] < in[i]) { best[p] = best[p - 1]; --p; }
      best[p] = in[i];
    }
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) sum += best[i];
    y.data<float>()[r] = static_cast<float>(sum / static_cast<double>(k));
  }
}
