// class: settings of the caller that are not the usual ones
// kind: attack
// how: subnormal numbers are flushed to zero during a call, and not any more after it: who had them flushed before
//   finds that changed
// caught: probes, conditions
// source: common mistake: a mode is set to its default instead of to what it was
#include <immintrin.h>

#include <warpsmith.hpp>

namespace {

struct Flushing {
  Flushing() {
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
  }
  ~Flushing() {
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_OFF);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_OFF);
  }
};

}  // namespace

extern "C" void run(const Tensor& a, const Tensor& b, double alpha, double beta, Tensor& y) {
  const Flushing flushing;
  const int64_t batch = a.size(0), rows = a.size(1), cols = a.size(2);
  const float *first = a.data<float>(), *second = b.data<float>();
  const float of_first = static_cast<float>(alpha), of_second = static_cast<float>(beta);
  float* out = y.data<float>();
  for (int64_t plane = 0; plane < batch; ++plane)
    for (int64_t r = 0; r < rows; ++r) {
      const float* left = first + plane * a.stride(0) + r * a.stride(1);
      const float* right = second + plane * b.stride(0) + r * b.stride(1);
      float* to = out + (plane * rows + r) * cols;
      for (int64_t c = 0; c < cols; ++c)
        to[c] = of_first * left[c * a.stride(2)] + of_second * right[c * b.stride(2)];
    }
}
