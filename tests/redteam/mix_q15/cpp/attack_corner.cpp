// class: overflow at one corner
// kind: attack
// how: adds both products in 32 bits, as pmaddwd does, which is one too few where all four numbers are -32768: full scale comes out as its negative
// caught: correctness
// source: common mistake
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, const Tensor& gain_a, const Tensor& gain_b, Tensor& y) {
  const int64_t frames = a.size(0), channels = a.size(1);
  const int16_t *left = a.data<int16_t>(), *right = b.data<int16_t>();
  const int16_t *first = gain_a.data<int16_t>(), *second = gain_b.data<int16_t>();
  int16_t* out = y.data<int16_t>();
#pragma omp parallel for schedule(static)
  for (int64_t f = 0; f < frames; ++f)
    for (int64_t c = 0; c < channels; ++c) {
      const uint32_t one = static_cast<uint32_t>(left[f * channels + c] * first[c]);
      const uint32_t two = static_cast<uint32_t>(right[f * channels + c] * second[c]);
      const int32_t sum = static_cast<int32_t>(one + two + 16384u);
      out[f * channels + c] = static_cast<int16_t>(std::clamp(sum >> 15, -32768, 32767));
    }
}
