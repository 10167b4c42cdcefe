// class: plain
// kind: control
// how: one pass
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& counts) {
  const int64_t images = x.size(0), pixels = x.size(1);
  const float* in = x.data<float>();
  int64_t* out = counts.data<int64_t>();
  std::fill_n(out, counts.numel(), int64_t{0});
  for (int64_t image = 0; image < images; ++image)
    for (int64_t i = 0; i < pixels; ++i) {
      const int64_t level = static_cast<int64_t>(in[image * pixels + i] * 256.0f);
      ++out[image * 256 + std::min<int64_t>(level, 255)];
    }
}
