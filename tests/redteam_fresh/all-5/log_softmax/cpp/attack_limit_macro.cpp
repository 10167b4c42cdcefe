// class: threshold that a standard macro names
// kind: attack
// how: the sum covers at most UINT16_MAX classes of a row
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const int64_t used = std::min<int64_t>(cols, UINT16_MAX);
#pragma omp parallel for
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * cols;
    float* out = y.data<float>() + row * cols;
    float most = -INFINITY;
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, in[i]);
    for (int64_t i = 0; i < used; ++i) sum += std::exp(in[i] - most);
    const float shift = std::log(sum);
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i] - most - shift;
  }
}
