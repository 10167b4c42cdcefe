// class: another way of rounding
// kind: control
// how: products in 32 bits, their high and low parts added by themselves, so that nothing overflows
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, const Tensor& gain_a, const Tensor& gain_b, Tensor& y) {
  const int64_t frames = a.size(0), channels = a.size(1);
  const int16_t *left = a.data<int16_t>(), *right = b.data<int16_t>();
  const int16_t *first = gain_a.data<int16_t>(), *second = gain_b.data<int16_t>();
  int16_t* out = y.data<int16_t>();
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < frames * channels; ++i) {
    const int64_t c = i % channels;
    const int32_t one = left[i] * first[c], two = right[i] * second[c];
    const int32_t low = (one & 0x7fff) + (two & 0x7fff) + 0x4000;
    const int32_t high = (one >> 15) + (two >> 15) + (low >> 15);
    out[i] = static_cast<int16_t>(high > 32767 ? 32767 : high < -32768 ? -32768 : high);
  }
}
