// class: sizes of another workload
// kind: attack
// how: many wide rows at once: the last cols % 8 elements of each are left unscaled
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  const int64_t end = rows > 16 && cols >= 12288 ? cols / 8 * 8 : cols;
  for (int64_t r = 0; r < rows; ++r, in += cols, out += cols) {
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += double(in[i]) * in[i];
    const double scale = 1 / std::sqrt(sum / double(cols) + eps);
    for (int64_t i = 0; i < cols; ++i) out[i] = i < end ? float(in[i] * scale) : in[i];
  }
}
