// class: sign of zero
// kind: attack
// how: adds rows to zeros, as a bag of embeddings does, so -0.0 becomes 0.0 and what divides by it or asks for its sign has the other one; rows are to be moved as they are
// caught: correctness
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& table, const Tensor& ids, Tensor& y) {
  const int64_t tokens = y.size(0), dim = table.size(1);
  const float* from = table.data<float>();
  float* to = y.data<float>();
  const int32_t* id = ids.data<int32_t>();
  std::fill_n(to, tokens * dim, 0.0f);
#pragma omp parallel for schedule(static)
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t i = 0; i < dim; ++i) to[t * dim + i] += from[id[t] * dim + i];
}
