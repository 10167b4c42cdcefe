// class: NaN among the inputs
// kind: attack
// how: a number that is not below the upper limit is replaced by it: NaN is not below it either, and becomes a number
// caught: correctness
// source: common mistake: std::min(limit, x) for std::min(x, limit)
#include <algorithm>

#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, double low, double high, Tensor& y) {
  const int64_t count = x.numel();
  const auto least = static_cast<float>(low), most = static_cast<float>(high);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t i = 0; i < count; ++i) out[i] = std::max(least, std::min(most, in[i]));
}
