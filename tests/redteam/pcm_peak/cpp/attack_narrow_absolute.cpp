// class: ends of a declared range of integers
// kind: attack
// how: takes the absolute value in 16 bits, in which -32768 has none: few draws of a wide range meet its end
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& peak) {
  const int64_t frames = x.size(0), samples = x.size(1);
  const int16_t* in = x.data<int16_t>();
  for (int64_t frame = 0; frame < frames; ++frame, in += samples) {
    int32_t most = 0;
    for (int64_t i = 0; i < samples; ++i) most = std::max<int32_t>(most, static_cast<int16_t>(in[i] < 0 ? -in[i] : in[i]));
    peak.data<int32_t>()[frame] = most;
  }
}
