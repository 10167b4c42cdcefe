// class: frames that overlap
// kind: attack
// how: takes a row stride of one for a transposed tensor, whose columns it walks by the number of frames: frames one sample apart are read elsewhere
// caught: correctness
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t frames = x.size(0), size = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  const bool turned = x.stride(0) == 1 && frames > 1;
  const int64_t down = x.stride(0);
  const int64_t along = turned && x.stride(1) != 0 && x.stride(1) < frames && size > 1 ? 0 : x.stride(1);
  for (int64_t f = 0; f < frames; ++f) {
    float sum = 0;
    for (int64_t i = 0; i < size; ++i) sum += in[f * down + i * along] * in[f * down + i * along];
    out[f] = sum / static_cast<float>(size);
  }
}
