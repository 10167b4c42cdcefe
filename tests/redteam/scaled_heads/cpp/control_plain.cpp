// class: plain
// kind: control
// how: three loops
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& scale, Tensor& y) {
  const int64_t batch = x.size(0), heads = x.size(1), dim = x.size(2);
  const float *in = x.data<float>(), *factors = scale.data<float>();
  float* out = y.data<float>();
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t d = 0; d < dim; ++d)
        *out++ = in[b * x.stride(0) + h * x.stride(1) + d * x.stride(2)] * factors[h];
}
