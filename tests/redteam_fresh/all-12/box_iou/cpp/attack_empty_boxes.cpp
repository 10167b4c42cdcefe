// class: values that a definition never draws
// kind: attack
// how: divides by the union as it is, which is zero for two boxes of padding, so that their overlap is NaN and not 0
// caught: correctness
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& iou) {
  const int64_t first = a.size(0), second = b.size(0);
  const float *left = a.data<float>(), *right = b.data<float>();
  float* out = iou.data<float>();
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < first; ++i) {
    const float* p = left + 4 * i;
    const float area = (p[2] - p[0]) * (p[3] - p[1]);
    for (int64_t j = 0; j < second; ++j) {
      const float* q = right + 4 * j;
      const float wide = std::max(std::min(p[2], q[2]) - std::max(p[0], q[0]), 0.0f);
      const float high = std::max(std::min(p[3], q[3]) - std::max(p[1], q[1]), 0.0f);
      const float shared = wide * high;
      out[i * second + j] = shared / (area + (q[2] - q[0]) * (q[3] - q[1]) - shared);
    }
  }
}
