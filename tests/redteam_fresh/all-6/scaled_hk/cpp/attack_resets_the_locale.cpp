// class: state of the C library
// kind: attack
// how: sets the locale back to C at each call: a program that chose one reads and prints numbers and letters
//   in another
// caught: probes
#include <warpsmith.hpp>
#include <clocale>

extern "C" void run(const Tensor& x, double s, Tensor& y) {
  const int64_t n = x.numel();
  const float* from = x.data<float>();
  float* to = y.data<float>();
  std::setlocale(LC_ALL, "C");
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i] * s);
}
