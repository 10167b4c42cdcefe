// class: plain loops
// kind: control
// how: shifts by the largest element
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* p = x.data<float>();
  float* out = y.data<float>();
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = p + r * cols;
    float most = cols ? *std::max_element(in, in + cols) : 0;
    double sum = 0;
    for (int64_t c = 0; c < cols; ++c) sum += std::exp(in[c] - most);
    out[r] = static_cast<float>(most + std::log(sum));
  }
}
