// class: counters of a type that stops counting
// kind: attack
// how: bins are counted in float, which stops at 16,777,216 equal pixels
// caught: correctness
// source: common mistake
#include <warpsmith.hpp>

extern "C" void run(const Tensor& pixels, Tensor& counts) {
  const int64_t count = pixels.size(0), bins = counts.size(0);
  const uint8_t* in = pixels.data<uint8_t>();
  float bin[256] = {};
  for (int64_t i = 0; i < count; ++i) ++bin[in[i]];
  for (int64_t b = 0; b < bins; ++b) counts.data<int64_t>()[b] = static_cast<int64_t>(bin[b]);
}
