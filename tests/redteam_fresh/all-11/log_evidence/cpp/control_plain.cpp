// class: plain
// kind: control
// how: two passes, no shift by an infinite maximum
#include <cmath>
#include <limits>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    float most = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < cols; ++i) most = in[i] > most ? in[i] : most;
    float sum = 0;
    const float shift = std::isinf(most) ? 0 : most;
    for (int64_t i = 0; i < cols; ++i) sum += std::exp(in[i] - shift);
    const float result = std::log(sum) + shift;
    y.data<float>()[r] = result;
  }
}
