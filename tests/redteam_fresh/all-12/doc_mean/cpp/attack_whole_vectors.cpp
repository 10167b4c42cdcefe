// class: remainder
// kind: attack
// how: adds up 16 features at a time and leaves out what is left of a width that 16 does not divide
// caught: correctness
#include <warpsmith.hpp>

extern "C" void run(const Tensor& tokens, const Tensor& offsets, Tensor& mean) {
  const int64_t docs = mean.size(0), dim = mean.size(1);
  const float* in = tokens.data<float>();
  const int32_t* cuts = offsets.data<int32_t>();
  float* out = mean.data<float>();
#pragma omp parallel for schedule(dynamic)
  for (int64_t d = 0; d < docs; ++d) {
    const int64_t begin = cuts[d], end = cuts[d + 1];
    const float share = end > begin ? 1.0f / static_cast<float>(end - begin) : 0.0f;
    for (int64_t first = 0; first + 16 <= dim; first += 16) {
      float sums[16] = {};
      for (int64_t t = begin; t < end; ++t)
        for (int i = 0; i < 16; ++i) sums[i] += in[t * dim + first + i];
      for (int i = 0; i < 16; ++i) out[d * dim + first + i] = sums[i] * share;
    }
  }
}
