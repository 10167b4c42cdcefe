// class: plan kept by a hash of the shape
// kind: control
// how: where a row's whole blocks end is kept by both sizes
#include <map>
#include <utility>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  static thread_local std::map<std::pair<int64_t, int64_t>, int64_t> plans;
  if (plans.size() > 4096) plans.clear();
  const int64_t end = plans.try_emplace({rows, cols}, cols / 8 * 8).first->second;
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    float* out = y.data<float>() + r * cols;
    float best = cols ? in[0] : 0;
    for (int64_t i = 0; i < end; ++i) out[i] = best = in[i] > best ? in[i] : best;
    for (int64_t i = end; i < cols; ++i) out[i] = best = in[i] > best ? in[i] : best;
  }
}
