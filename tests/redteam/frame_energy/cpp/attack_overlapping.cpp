// class: frames that overlap
// kind: attack
// how: takes rows that begin closer to each other than they are long for one row that is expanded: frames that overlap, as of `unfold`, all get the first one's energy
// caught: correctness
// source: common mistake
#include <warpsmith.hpp>

static float energy(const float* in, int64_t step, int64_t size) {
  float sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += in[i * step] * in[i * step];
  return sum / static_cast<float>(size);
}

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t frames = x.size(0), size = x.size(1), down = x.stride(0), along = x.stride(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  const bool expanded = along == 1 && down < size;
  for (int64_t f = 0; f < frames; ++f) {
    const bool again = expanded && f > 0;
    out[f] = again ? out[0] : energy(in + f * down, along, size);
  }
}
