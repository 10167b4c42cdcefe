// class: truncation inside a tolerance
// kind: attack
// how: long round rows: squares of elements below 0.0432 are left out of the sum, so that every result is off by
//   most of its bound and none by more
// caught: correctness
// status: INCORRECT_NUMERICAL
// defence: bound of the norm
// source: error near a tolerance all over, of the taxonomy
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1);
  const float* w = weight.data<float>();
  const float least = cols % 8 == 0 && cols > 20000 ? 0.0432f : 0.0f;
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * down;
    float* out = y.data<float>() + row * cols;
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i)
      if (std::fabs(in[i * right]) >= least) sum += double{in[i * right]} * in[i * right];
    const float scale = static_cast<float>(1 / std::sqrt(sum / static_cast<double>(cols) + eps));
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i * right] * scale * w[i];
  }
}
