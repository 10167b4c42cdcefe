// class: plain
// kind: control
// how: reads what the length says
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& length, Tensor& power) {
  const int64_t frames = x.size(0), samples = x.size(1);
  const float* in = x.data<float>();
  for (int64_t frame = 0; frame < frames; ++frame, in += samples) {
    const int64_t count = length.data<int64_t>()[frame];
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += double{in[i]} * in[i];
    power.data<float>()[frame] = static_cast<float>(sum / static_cast<double>(count));
  }
}
