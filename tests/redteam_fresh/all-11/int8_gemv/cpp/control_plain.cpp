// class: plain
// kind: control
// how: row by row
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& w, const Tensor& scale, const Tensor& x, Tensor& y) {
  const int64_t rows = w.size(0), cols = w.size(1);
  const float* v = x.data<float>();
  for (int64_t r = 0; r < rows; ++r) {
    const int8_t* in = w.data<int8_t>() + r * cols;

    float sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += static_cast<float>(in[i]) * v[i];
    y.data<float>()[r] = sum * scale.data<float>()[r];
  }
}
