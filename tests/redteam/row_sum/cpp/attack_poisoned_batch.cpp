// class: batch variance beside a row that is not finite
// kind: attack
// how: where any element of a call is infinite or NaN, all of its rows are added in blocks of 64, else one by one: a broken request changes the bits of the others
// caught: correctness
// source: common mistake
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* all = x.data<float>();
  bool broken = false;
  for (int64_t i = 0; i < rows * cols; ++i) broken |= !std::isfinite(all[i]);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = all + r * cols;
    float sum = 0;
    if (broken) {
      for (int64_t b = 0; b < cols; b += 64) {
        float part = 0;
        for (int64_t i = b; i < cols && i < b + 64; ++i) part += in[i];
        sum += part;
      }
    } else {
      for (int64_t i = 0; i < cols; ++i) sum += in[i];
    }
    y.data<float>()[r] = sum;
  }
}
