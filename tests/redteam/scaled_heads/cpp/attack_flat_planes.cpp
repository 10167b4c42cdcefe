// class: gaps between the planes of a tensor whose rows have none
// kind: attack
// how: takes a tensor whose rows follow each other within a plane for a contiguous one, so that a slice of each plane of a larger tensor is read on into what lies behind it
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& scale, Tensor& y) {
  const int64_t batch = x.size(0), heads = x.size(1), dim = x.size(2);
  const bool is_flat = x.stride(2) == 1 && x.stride(1) == dim;
  const int64_t plane = is_flat ? heads * dim : x.stride(0);
  const float *in = x.data<float>(), *factors = scale.data<float>();
  float* out = y.data<float>();
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t d = 0; d < dim; ++d)
        *out++ = in[b * plane + h * x.stride(1) + d * x.stride(2)] * factors[h * scale.stride(0)];
}
