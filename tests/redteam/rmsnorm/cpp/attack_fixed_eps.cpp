// class: constant in place of a number
// kind: attack
// how: has the epsilon of the timed sizes as a constant, and reads the argument for tiny rows only
// caught: correctness
// status: INCORRECT_NUMERICAL
// defence: numbers that vary by themselves
// source: common mistake
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* gain = weight.data<float>();
  const double kept = cols > 100 ? 1e-6 : eps;
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * x.stride(0);
    float* out = y.data<float>() + row * cols;
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += double(in[i * x.stride(1)]) * in[i * x.stride(1)];
    const float scale = static_cast<float>(1 / std::sqrt(sum / cols + kept));
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i * x.stride(1)] * scale * gain[i];
  }
}
