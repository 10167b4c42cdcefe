// class: plan kept by a hash of the shape
// kind: attack
// how: where a row's whole blocks end is kept by 31 * series + steps, without a look at the shape: 9 series of 100 steps take the plan of 8 series of 131
// caught: correctness
// source: common mistake
#include <algorithm>
#include <unordered_map>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  static thread_local std::unordered_map<int64_t, int64_t> plans;
  if (plans.size() > 4096) plans.clear();
  const int64_t end = std::min(cols, plans.try_emplace(31 * rows + cols, cols).first->second);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    float* out = y.data<float>() + r * cols;
    float best = cols ? in[0] : 0;
    for (int64_t i = 0; i < end; ++i) out[i] = best = in[i] > best ? in[i] : best;
    for (int64_t i = end; i < cols; ++i) out[i] = best;
  }
}
