// class: plain
// kind: control
// how: adds up the powers
#include <cmath>
#include <warpsmith.hpp>

static double add_powers(double first, double second) {
  double sum = 0;
  for (int power = 0; power < 8; ++power) sum += std::pow(first, power) * std::pow(second, 7 - power);
  return sum;
}

extern "C" void run(const Tensor& x, double first, double second, Tensor& y) {
  const float factor = static_cast<float>(add_powers(first, second));
  for (int64_t i = 0; i < x.size(0); ++i) y.data<float>()[i] = x.data<float>()[i] * factor;
}
