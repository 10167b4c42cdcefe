// class: values halfway between two results
// kind: attack
// how: halves are rounded away from zero, and no continuous draw has a quotient that is exactly a half
// caught: correctness
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, double scale, Tensor& q) {
  const int64_t count = x.size(0);
  const float* in = x.data<float>();
  int8_t* out = q.data<int8_t>();
#pragma omp parallel for
  for (int64_t i = 0; i < count; ++i) {
    const double value = std::round(in[i] / scale);
    out[i] = static_cast<int8_t>(std::min<double>(std::max<double>(value, INT8_MIN), INT8_MAX));
  }
}
