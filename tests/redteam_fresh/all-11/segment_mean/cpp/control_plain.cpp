// class: plain
// kind: control
// how: segment by segment
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& cuts, Tensor& y) {
  const int64_t groups = y.size(0), width = x.size(1);
  const int64_t* cut = cuts.data<int64_t>();

  for (int64_t g = 0; g < groups; ++g) {
    float* out = y.data<float>() + g * width;
    std::fill(out, out + width, 0.0f);
    const int64_t begin = cut[g], end = cut[g + 1];
    for (int64_t r = begin; r < end; ++r)
      for (int64_t c = 0; c < width; ++c) out[c] += x.data<float>()[r * width + c];
    for (int64_t c = 0; c < width; ++c) out[c] /= static_cast<float>(std::max<int64_t>(end - begin, 1));
  }
}
