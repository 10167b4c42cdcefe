// class: plain
// kind: control
// how: strides as they are
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
  for (int64_t f = 0; f < frames; ++f) out[f] = energy(in + f * down, along, size);
}
