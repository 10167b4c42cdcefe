// class: rows on the stack of a thread
// kind: attack
// how: exponentials of a row lie on the stack of the thread that computes it, which overflows for long rows
// caught: correctness
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
#pragma omp parallel for
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * cols;
    float* out = y.data<float>() + row * cols;
    float kept[cols + 1];
    float most = -INFINITY;
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, in[i]);
    for (int64_t i = 0; i < cols; ++i) kept[i] = std::exp(in[i] - most);
    for (int64_t i = 0; i < cols; ++i) sum += kept[i];
    const float shift = std::log(sum);
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i] - most - shift;
  }
}
