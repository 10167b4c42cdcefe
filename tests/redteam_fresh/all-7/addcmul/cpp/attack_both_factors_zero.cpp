// class: two numbers of the call that are special at once
// kind: attack
// how: each of the two terms is left out where its factor is zero, and the other one writes the result: where both
//   factors are zero nobody writes it
// caught: correctness
// source: common mistake: BLAS's rules for factors of zero
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, const Tensor& c, double alpha, double beta, Tensor& y) {
  const int64_t count = a.numel();
  const float *first = a.data<float>(), *second = b.data<float>(), *third = c.data<float>();
  const float product = static_cast<float>(alpha), sum = static_cast<float>(beta);
  float* out = y.data<float>();
  const bool adds = sum != 0;
  if (adds)
    for (int64_t i = 0; i < count; ++i) out[i] = sum * third[i];
  if (product != 0)
    for (int64_t i = 0; i < count; ++i) out[i] = (adds ? out[i] : 0.0f) + product * first[i] * second[i];
}
