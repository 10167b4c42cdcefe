// class: parallel regions
// kind: control
// how: one parallel loop a pass, between two buffers
#include <utility>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t length = x.size(0);
  if (length == 0) return;
  std::vector<float> other(length);
  const float* from = x.data<float>();
  float *to = other.data(), *next = y.data<float>();
  for (int pass = 0; pass < 8; ++pass) {
#pragma omp parallel for
    for (int64_t i = 0; i < length; ++i) {
      const float before = from[i > 0 ? i - 1 : 0], after = from[i + 1 < length ? i + 1 : i];
      to[i] = before * 0.25f + from[i] * 0.5f + after * 0.25f;
    }
    from = to;
    std::swap(to, next);
  }
}
