// class: plain
// kind: control
// how: a function for each type
#include <cmath>
#include <map>
#include <mutex>
#include <utility>
#include <warpsmith.hpp>

template <typename T> static void normalize(const Tensor& x, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const T* in = static_cast<const T*>(x.address) + r * cols;
    T* out = static_cast<T*>(y.address) + r * cols;
    float sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += static_cast<float>(in[i]) * static_cast<float>(in[i]);
    const float factor = 1 / std::sqrt(sum / static_cast<float>(cols) + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i) out[i] = T(static_cast<float>(in[i]) * factor);
  }
}

using Plan = void (*)(const Tensor&, double, Tensor&);

static Plan choose(const Tensor& x) {
  return x.dtype == warpsmith::DType::float32 ? normalize<float> : normalize<bfloat16>;
}

extern "C" void run(const Tensor& x, double eps, Tensor& y) {
  choose(x)(x, eps, y);
}
