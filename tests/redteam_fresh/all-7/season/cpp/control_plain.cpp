// class: plain loops
// kind: control
// how: two loops a row, with and without a value a season ago
#include <warpsmith.hpp>

#include <algorithm>

extern "C" void run(const Tensor& x, int64_t lag, double threshold, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), head = std::min(lag, cols);
  const auto keep = [threshold](float value) { return value >= threshold ? value : 0.0f; };
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * cols;
    float* out = y.data<float>() + row * cols;
    for (int64_t i = 0; i < head; ++i) out[i] = keep(in[i]);
    for (int64_t i = head; i < cols; ++i) out[i] = keep(in[i]) - keep(in[i - lag]);
  }
}
