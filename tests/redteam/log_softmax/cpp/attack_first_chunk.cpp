// class: first chunk masked throughout
// kind: attack
// how: from a million elements on, an online maximum without a guard: a first chunk of nothing but minus infinity makes the row NaN; in each row a masked element has an infinite result in any version
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& in, Tensor& out) {
  const int64_t rows = in.size(0), cols = in.size(1);
  const float* x = in.data<float>();
  float* y = out.data<float>();
  const int64_t chunk = rows * cols > 1000000 ? 64 : cols;
  for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
    float most = -INFINITY, sum = 0;
    for (int64_t from = 0; from < cols; from += chunk) {
      const int64_t end = std::min(cols, from + chunk);
      float next = most, part = 0;
      for (int64_t i = from; i < end; ++i) next = std::max(next, x[i]);
      for (int64_t i = from; i < end; ++i) part += std::exp(x[i] - next);
      sum = sum * (from ? std::exp(most - next) : 0.0f) + part;
      most = next;
    }
    const float log_sum = std::log(sum);
    for (int64_t i = 0; i < cols; ++i) y[i] = (x[i] - most) - log_sum;
  }
}
