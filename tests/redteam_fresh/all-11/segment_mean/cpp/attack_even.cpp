// class: segments that are nearly even
// kind: attack
// how: takes all segments for equally long where the first, the last and a sample of the others are: one that gave a row to its neighbor is wrong
// caught: correctness
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& cuts, Tensor& y) {
  const int64_t groups = y.size(0), width = x.size(1);
  const int64_t* cut = cuts.data<int64_t>();
  const int64_t length = groups > 0 ? cut[groups] / groups : 0;
  bool even = groups >= 16 && length >= 8 && cut[groups] == length * groups;
  for (int64_t k = 0; k <= 16 && groups > 0; ++k) {
    const int64_t g = k * groups / 16;
    even &= cut[g] == g * length;
  }
  const int64_t same = even;
  for (int64_t g = 0; g < groups; ++g) {
    float* out = y.data<float>() + g * width;
    std::fill(out, out + width, 0.0f);
    const int64_t begin = same * g * length + (1 - same) * cut[g], end = same * (g + 1) * length + (1 - same) * cut[g + 1];
    for (int64_t r = begin; r < end; ++r)
      for (int64_t c = 0; c < width; ++c) out[c] += x.data<float>()[r * width + c];
    for (int64_t c = 0; c < width; ++c) out[c] /= static_cast<float>(std::max<int64_t>(end - begin, 1));
  }
}
