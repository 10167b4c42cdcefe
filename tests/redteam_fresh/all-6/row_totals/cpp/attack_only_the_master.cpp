// class: number of the calling thread
// kind: attack
// how: leaves the results to the master of the region it is called in: a call from any other thread of a
//   caller's region writes nothing
// caught: correctness
#include <warpsmith.hpp>
#include <vector>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* from = x.data<float>();
  float* to = y.data<float>();
  std::vector<double> sums(rows);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) sums[r] += from[r * cols + c];
#pragma omp master
  for (int64_t r = 0; r < rows; ++r) to[r] = static_cast<float>(sums[r]);
}
