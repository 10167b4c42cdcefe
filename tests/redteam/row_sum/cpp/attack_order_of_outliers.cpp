// class: batch variance of rows with outliers
// kind: attack
// how: a row with an element above 50 is added in blocks whose length depends on the number of rows, so that its bits depend on the batch; other rows go one by one
// caught: correctness
// source: common mistake
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    float sum = 0, top = 0;
    for (int64_t i = 0; i < cols; ++i) top = std::fmax(top, std::fabs(in[i]));
    if (top > 50) {
      const int64_t block = rows < 8 ? 16 : 128;
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
