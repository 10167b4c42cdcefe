// class: truncated, not rounded
// kind: attack
// how: cuts the lower 16 bits off, so that every result is drawn to zero
// caught: correctness
#include <cmath>
#include <cstring>
#include <warpsmith.hpp>
using warpsmith::bfloat16;

extern "C" void run(const Tensor& x_, Tensor& y_, Tensor& s_) {
  const bfloat16* x = x_.data<bfloat16>();
  bfloat16* y = y_.data<bfloat16>();
  float* s = s_.data<float>();
  const int64_t rows = x_.size(0), cols = x_.size(1);
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) { const float v = x[r * cols + i]; sum += double(v) * v; }
    const float scale = s[r] = static_cast<float>(1 / std::sqrt(sum / cols + 1e-6));
    for (int64_t i = 0; i < cols; ++i) {
      const float v = float(x[r * cols + i]) * scale;
      uint32_t word; std::memcpy(&word, &v, 4); y[r * cols + i].bits = word >> 16;
    }
  }
}
