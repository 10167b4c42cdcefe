#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& ids, const Tensor& table, const Tensor& offsets, Tensor& out) {
  const int64_t count = ids.size(0), bags = offsets.size(0), cols = table.size(1);
  const int64_t *id = ids.data<int64_t>(), *start = offsets.data<int64_t>();
  const float* rows = table.data<float>();
  float* result = out.data<float>();
#pragma omp parallel for schedule(dynamic, 8)
  for (int64_t bag = 0; bag < bags; ++bag) {
    float* to = result + bag * cols;
    std::fill_n(to, cols, 0.0f);
    const int64_t end = bag + 1 < bags ? start[bag + 1] : count;
    for (int64_t k = start[bag]; k < end; ++k)
      for (int64_t i = 0; i < cols; ++i) to[i] += rows[id[k] * cols + i];
  }
}
