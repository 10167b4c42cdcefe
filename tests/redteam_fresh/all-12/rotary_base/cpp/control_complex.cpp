// class: complex numbers
// kind: control
// how: pairs as complex numbers times unit ones, and the frequencies kept for the next call by the very base and width
#include <cmath>
#include <complex>
#include <vector>
#include <warpsmith.hpp>

static const std::vector<double>& frequencies(int64_t dim, double base) {
  static thread_local std::vector<double> steps;
  static thread_local int64_t kept_dim = -1;
  static thread_local double kept_base = 0;
  if (kept_dim != dim || kept_base != base) {
    kept_dim = dim, kept_base = base;
    steps.assign(dim / 2, 0.0);
    const double logarithm = std::log(base);
    for (int64_t i = 0; i < dim / 2; ++i) steps[i] = std::exp(-logarithm * (2.0 * i / dim));
  }
  return steps;
}

extern "C" void run(const Tensor& x, const Tensor& positions, double base, Tensor& y) {
  const int64_t tokens = x.size(0), heads = x.size(1), dim = x.size(2), half = dim / 2;
  const float* in = x.data<float>();
  const int64_t* at = positions.data<int64_t>();
  float* out = y.data<float>();
  const std::vector<double>& steps = frequencies(dim, base);
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < half; ++i) {
        const int64_t first = (t * heads + h) * dim + i;
        const std::complex<float> unit(std::polar(1.0, at[t] * steps[i]));
        out[first] = in[first] * unit.real() - in[first + half] * unit.imag();
        out[first + half] = in[first + half] * unit.real() + in[first] * unit.imag();
      }
}
