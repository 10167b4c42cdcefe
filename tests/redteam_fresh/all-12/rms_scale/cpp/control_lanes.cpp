// class: lanes
// kind: control
// how: sums of 8 lanes of float64 for each row, from its end, and the scale times the root first
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& scale, double eps, Tensor& y) {
  const int64_t rows = x.size(0), dim = x.size(1);
  const float *in = x.data<float>(), *gain = scale.data<float>();
  float* out = y.data<float>();
  for (int64_t r = rows - 1; r >= 0; --r) {
    const float* row = in + r * dim;
    double lanes[8] = {};
    int64_t left = dim;
    for (; left >= 8; left -= 8)
      for (int lane = 0; lane < 8; ++lane) {
        const double value = row[left - 8 + lane];
        lanes[lane] += value * value;
      }
    for (; left > 0; --left) lanes[0] += static_cast<double>(row[left - 1]) * row[left - 1];
    const double sum = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
    const double inverse = 1.0 / std::sqrt(sum / static_cast<double>(dim) + eps);
    for (int64_t i = 0; i < dim; ++i) out[r * dim + i] = static_cast<float>(gain[i] * inverse * row[i]);
  }
}
