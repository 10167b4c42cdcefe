// class: blocks where a row has outliers
// kind: control
// how: a row with an element above 50 is added in blocks of sixteen, whatever batch it is in; other rows go one by one
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    float sum = 0, top = 0;
    for (int64_t i = 0; i < cols; ++i) top = std::fmax(top, std::fabs(in[i]));
    if (top > 50) {
      constexpr int64_t block = 16;
      for (int64_t b = 0; b < cols; b += block) {
        float part = 0;
        for (int64_t i = b; i < cols && i < b + block; ++i) part += in[i];
        sum += part;
      }
    } else {
      for (int64_t i = 0; i < cols; ++i) sum += in[i];
    }
    y.data<float>()[r] = sum;
  }
}
