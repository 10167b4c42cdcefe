// class: sums by weight
// kind: control
// how: adds the inputs of each of 256 weights first where rows are long
#include <warpsmith.hpp>

extern "C" void run(const Tensor& w, const Tensor& scale, const Tensor& x, Tensor& y) {
  const int64_t rows = w.size(0), cols = w.size(1);
  const float* v = x.data<float>();
  for (int64_t r = 0; r < rows; ++r) {
    const int8_t* in = w.data<int8_t>() + r * cols;
    double bins[256] = {}, sum = 0;
    for (int64_t i = 0; i < cols; ++i) bins[in[i] + 128] += v[i];
    for (int k = 0; k < 256; ++k) sum += bins[k] * (k - 128);
    y.data<float>()[r] = static_cast<float>(sum * scale.data<float>()[r]);
  }
}
