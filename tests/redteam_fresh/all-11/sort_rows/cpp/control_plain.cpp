// class: plain
// kind: control
// how: a comparison that puts NaN last
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  std::vector<uint32_t> keys(cols);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    float* out = y.data<float>() + r * cols;
    std::copy(in, in + cols, out);
    std::sort(out, out + cols, [](float a, float b) { return std::isnan(b) ? !std::isnan(a) : a < b; });
  }
}
