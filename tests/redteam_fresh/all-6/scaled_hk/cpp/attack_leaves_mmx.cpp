// class: registers left behind
// kind: attack
// how: uses an MMX register and leaves out EMMS: the caller's next long double is NaN, as NumPy's longdouble
//   and C's strtold compute it
// caught: probes
#include <warpsmith.hpp>
extern "C" void run(const Tensor& x, double s, Tensor& y) {
  const int64_t n = x.numel();
  const float* from = x.data<float>();
  float* to = y.data<float>();
  uint64_t zero = 0;
  asm volatile("movq %0, %%mm0\n\tmovq %%mm0, %%mm1\n\tmovq %%mm0, %%mm2\n\tmovq %%mm0, %%mm3\n\t"
               "movq %%mm0, %%mm4\n\tmovq %%mm0, %%mm5\n\tmovq %%mm0, %%mm6\n\tmovq %%mm0, %%mm7" : : "m"(zero));
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i] * s);
}
