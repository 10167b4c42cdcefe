// class: copy of a table with one element more
// kind: control
// how: the table is copied, with its last colour once more at the end, so that no level needs a comparison
// source: honest
#include <algorithm>
#include <vector>

#include <warpsmith.hpp>

extern "C" void run(const Tensor& level, const Tensor& table, Tensor& y) {
  const int64_t count = level.numel(), colors = table.numel();
  const float *levels = level.data<float>(), *values = table.data<float>();
  float* out = y.data<float>();
  if (count == 0) return;
  std::vector<float> padded(values, values + colors);
  padded.push_back(padded.back());
  const double scale = static_cast<double>(colors);
  for (int64_t i = 0; i < count; ++i) out[i] = padded[static_cast<int64_t>(levels[i] * scale)];
}
