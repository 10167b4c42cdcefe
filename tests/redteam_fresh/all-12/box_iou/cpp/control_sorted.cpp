// class: order of the left edges
// kind: control
// how: in float64; sorts the second boxes by their left edge and stops at the first one that begins behind a box
#include <algorithm>
#include <numeric>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& iou) {
  const int64_t first = a.size(0), second = b.size(0);
  const float *left = a.data<float>(), *right = b.data<float>();
  float* out = iou.data<float>();
  std::vector<int64_t> order(static_cast<size_t>(second));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [right](int64_t i, int64_t j) { return right[4 * i] < right[4 * j]; });
  std::fill_n(out, first * second, 0.0f);
#pragma omp parallel for schedule(dynamic)
  for (int64_t i = 0; i < first; ++i) {
    const float* p = left + 4 * i;
    const double area = (double{p[2]} - p[0]) * (double{p[3]} - p[1]);
    for (const int64_t j : order) {
      const float* q = right + 4 * j;
      if (q[0] >= p[2]) break;
      const double wide = double{std::min(p[2], q[2])} - std::max(p[0], q[0]);
      const double high = double{std::min(p[3], q[3])} - std::max(p[1], q[1]);
      if (wide <= 0 || high <= 0) continue;
      const double shared = wide * high, other = (double{q[2]} - q[0]) * (double{q[3]} - q[1]);
      out[i * second + j] = static_cast<float>(shared / std::max(area + other - shared, 1e-9));
    }
  }
}
