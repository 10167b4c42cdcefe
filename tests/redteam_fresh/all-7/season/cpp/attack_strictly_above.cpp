// class: values that are a number of the call
// kind: attack
// how: keeps what is above the threshold and not what is equal to it, as scores of few bits often are
// caught: correctness
// source: common mistake
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, int64_t lag, double threshold, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const auto keep = [threshold](float value) { return value > threshold ? value : 0.0f; };
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * cols;
    float* out = y.data<float>() + row * cols;
    for (int64_t i = 0; i < cols; ++i) out[i] = keep(in[i]) - (i < lag ? 0.0f : keep(in[i - lag]));
  }
}
