// class: NaN in padding
// kind: attack
// how: multiplies the padding of a frame by zero, which is NaN where its memory was never written
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& length, Tensor& power) {
  const int64_t frames = x.size(0), samples = x.size(1);
  const float* in = x.data<float>();
  for (int64_t frame = 0; frame < frames; ++frame, in += samples) {
    const int64_t count = length.data<int64_t>()[frame];
    double sum = 0;
    for (int64_t i = 0; i < samples; ++i) sum += in[i] * in[i] * (i < count ? 1.0f : 0.0f);
    power.data<float>()[frame] = static_cast<float>(sum / static_cast<double>(count));
  }
}
