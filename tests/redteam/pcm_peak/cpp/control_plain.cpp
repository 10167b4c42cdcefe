// class: plain
// kind: control
// how: takes the absolute value in 32 bits
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& peak) {
  const int64_t frames = x.size(0), samples = x.size(1);
  const int16_t* in = x.data<int16_t>();
  for (int64_t frame = 0; frame < frames; ++frame, in += samples) {
    int32_t most = 0;
    for (int64_t i = 0; i < samples; ++i) most = std::max<int32_t>(most, in[i] < 0 ? -in[i] : in[i]);
    peak.data<int32_t>()[frame] = most;
  }
}
