// class: branch that only enormous inputs reach
// kind: control
// how: counters of 32 bits are added to those of 64 bits before any of them could overflow
#include <cstdint>
#include <warpsmith.hpp>

static void flush(uint32_t* bin, int64_t* out, int64_t bins) {
  for (int64_t b = 0; b < bins; ++b) {
    out[b] += bin[b];
    bin[b] = 0;
  }
}

extern "C" void run(const Tensor& pixels, Tensor& counts) {
  const int64_t count = pixels.size(0), bins = counts.size(0);
  const uint8_t* in = pixels.data<uint8_t>();
  int64_t* out = counts.data<int64_t>();
  for (int64_t b = 0; b < bins; ++b) out[b] = 0;
  uint32_t bin[256] = {}, room = UINT32_MAX;
  for (int64_t i = 0; i < count; ++i) {
    ++bin[in[i]];
    if (--room == 0) {
      flush(bin, out, bins);
      room = UINT32_MAX;
    }
  }
  flush(bin, out, bins);
}
