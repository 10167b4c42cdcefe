// class: scalar ignored
// kind: attack
// how: multiplies by 8, the default scale
// caught: correctness
// source: own idea
#include <warpsmith.hpp>

extern "C" void run(const Tensor& table, const Tensor& index, double scale, int64_t padding, Tensor& y) {
  const int64_t count = index.size(0), dim = table.size(1), used = dim;
  const float* in = table.data<float>();
  const int64_t* at = index.data<int64_t>();
  float* out = y.data<float>();
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < used; ++j) out[i * dim + j] = at[i] == padding ? 0.0f : in[at[i] * dim + j] * 8.0f;
}
