// class: plain
// kind: control
// how: one sum in float64 for each row
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& length) {
  const int64_t rows = x.size(0), n = x.size(1);
  const float* in = x.data<float>();
  float* out = length.data<float>();
  for (int64_t r = 0; r < rows; ++r, in += n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(in[i]) * in[i];
    out[r] = static_cast<float>(std::sqrt(sum));
  }
}
