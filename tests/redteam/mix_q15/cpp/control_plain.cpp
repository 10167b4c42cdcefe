// class: plain
// kind: control
// how: in 64 bits
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, const Tensor& gain_a, const Tensor& gain_b, Tensor& y) {
  const int64_t frames = a.size(0), channels = a.size(1);
  const int16_t *left = a.data<int16_t>(), *right = b.data<int16_t>();
  const int16_t *first = gain_a.data<int16_t>(), *second = gain_b.data<int16_t>();
  int16_t* out = y.data<int16_t>();
  for (int64_t f = 0; f < frames; ++f)
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t sum = int64_t{left[f * channels + c]} * first[c] + int64_t{right[f * channels + c]} * second[c];
      out[f * channels + c] = static_cast<int16_t>(std::clamp<int64_t>((sum + 16384) >> 15, -32768, 32767));
    }
}
