// class: lengths of lengths
// kind: control
// how: halves a row until it is short, and takes the hypotenuse of both lengths, so that nothing overflows
#include <cmath>
#include <warpsmith.hpp>

static double measure(const float* from, int64_t count) {
  if (count > 256) {
    const int64_t half = count / 2;
    return std::hypot(measure(from, half), measure(from + half, count - half));
  }
  double sum = 0;
  for (int64_t i = count - 1; i >= 0; --i) sum += static_cast<double>(from[i]) * from[i];
  return std::sqrt(sum);
}

extern "C" void run(const Tensor& x, Tensor& length) {
  const int64_t rows = x.size(0), n = x.size(1);
  const float* in = x.data<float>();
  float* out = length.data<float>();
#pragma omp parallel for schedule(dynamic)
  for (int64_t r = 0; r < rows; ++r) out[r] = static_cast<float>(measure(in + r * n, n));
}
