// class: state of the C library
// kind: attack
// how: sets a handler that ends the program with code 0 where memory is short: a caller that would catch
//   bad_alloc is gone, and its shell sees success
// caught: probes
#include <warpsmith.hpp>
#include <cstdlib>
#include <new>

extern "C" void run(const Tensor& x, double s, Tensor& y) {
  const int64_t n = x.numel();
  const float* from = x.data<float>();
  float* to = y.data<float>();
  std::set_new_handler([] { std::exit(0); });
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i] * s);
}
