// class: outer products
// kind: control
// how: packs the columns of x, goes through them backwards, and adds the bias at the end
#include <algorithm>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& w, const Tensor& bias, Tensor& y) {
  const int64_t rows = x.size(0), k = x.size(1), cols = w.size(1), down = x.stride(0), right = x.stride(1);
  const float *in = x.data<float>(), *factors = w.data<float>(), *added = bias.data<float>();
  float* out = y.data<float>();
  std::vector<double> sums(static_cast<size_t>(rows * cols), 0.0);
  std::vector<float> column(static_cast<size_t>(rows));
  for (int64_t p = k - 1; p >= 0; --p) {
    for (int64_t r = 0; r < rows; ++r) column[r] = in[r * down + p * right];
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < cols; ++j) sums[r * cols + j] += static_cast<double>(column[r]) * factors[p * cols + j];
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < cols; ++j) out[r * cols + j] = static_cast<float>(sums[r * cols + j] + added[j]);
}
