// class: plain
// kind: control
// how: one document after the other
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& tokens, const Tensor& offsets, Tensor& mean) {
  const int64_t docs = mean.size(0), dim = mean.size(1);
  const float* in = tokens.data<float>();
  const int32_t* cuts = offsets.data<int32_t>();
  float* out = mean.data<float>();
  for (int64_t d = 0; d < docs; ++d) {
    float* to = out + d * dim;
    std::fill_n(to, dim, 0.0f);
    for (int64_t t = cuts[d]; t < cuts[d + 1]; ++t)
      for (int64_t i = 0; i < dim; ++i) to[i] += in[t * dim + i];
    const float count = static_cast<float>(std::max(cuts[d + 1] - cuts[d], 1));
    for (int64_t i = 0; i < dim; ++i) to[i] /= count;
  }
}
