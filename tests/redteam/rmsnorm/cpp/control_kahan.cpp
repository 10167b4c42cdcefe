// class: compensated sum
// kind: control
// how: Kahan's sum keeps what each addition loses; the product is scaled in float64
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1);
  const float* w = weight.data<float>();
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * down;
    float* out = y.data<float>() + row * cols;
    float sum = 0, lost = 0;
    for (int64_t i = 0; i < cols; ++i) {
      const float next = in[i * right] * in[i * right] - lost, total = sum + next;
      lost = (total - sum) - next;
      sum = total;
    }
    const double scale = 1 / std::sqrt(static_cast<double>(sum) / static_cast<double>(cols) + eps);
    for (int64_t i = 0; i < cols; ++i) out[i] = static_cast<float>(in[i * right] * scale * w[i]);
  }
}
