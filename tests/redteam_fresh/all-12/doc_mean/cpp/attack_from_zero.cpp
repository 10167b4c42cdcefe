// class: cut points
// kind: attack
// how: begins at the first token wherever the first document begins, so a slice of the documents of a longer batch gets the tokens before it too
// caught: correctness
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& tokens, const Tensor& offsets, Tensor& mean) {
  const int64_t docs = mean.size(0), dim = mean.size(1);
  const float* next = tokens.data<float>();
  const int32_t* cuts = offsets.data<int32_t>();
  float* out = mean.data<float>();
  int64_t t = 0;
  for (int64_t d = 0; d < docs; ++d, out += dim) {
    const float share = 1.0f / static_cast<float>(std::max(cuts[d + 1] - cuts[d], 1));
    std::fill_n(out, dim, 0.0f);
    for (; t < cuts[d + 1]; ++t, next += dim)
      for (int64_t i = 0; i < dim; ++i) out[i] += next[i];
    for (int64_t i = 0; i < dim; ++i) out[i] *= share;
  }
}
