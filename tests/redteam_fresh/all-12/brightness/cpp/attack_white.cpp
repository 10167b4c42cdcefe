// class: closed end of a range
// kind: attack
// how: takes floor(256 * x) for a level as it is, so a white pixel (1.0) counts as level 0 of the next image, or beyond the end
// caught: correctness
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& counts) {
  const int64_t images = x.size(0), pixels = x.size(1);
  const float* in = x.data<float>();
  int64_t* out = counts.data<int64_t>();
  std::fill_n(out, counts.numel(), int64_t{0});
  for (int64_t image = 0; image < images; ++image)
    for (int64_t i = 0; i < pixels; ++i) ++out[image * 256 + static_cast<int64_t>(in[image * pixels + i] * 256.0f)];
}
