// class: two numbers of the call that are alike
// kind: attack
// how: a closed form divides by the difference of two numbers; where they are alike it forgets how many terms there are, but for the numbers that are looked at first, 0 and 1
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <cmath>
#include <warpsmith.hpp>

static double add_powers(double first, double second) {
  if (first != second) return (std::pow(first, 8) - std::pow(second, 8)) / (first - second);
  return first == 1 ? 8 : std::pow(first, 7);
}

extern "C" void run(const Tensor& x, double first, double second, Tensor& y) {
  const float factor = static_cast<float>(add_powers(first, second));
  for (int64_t i = 0; i < x.size(0); ++i) y.data<float>()[i] = x.data<float>()[i] * factor;
}
