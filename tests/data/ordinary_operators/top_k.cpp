#include <algorithm>
#include <numeric>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, int64_t count, Tensor& out0, Tensor& out1) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* first = x.data<float>();
  float* values = out0.data<float>();
  int64_t* indices = out1.data<int64_t>();
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = first + row * cols;
    std::vector<int64_t> order(cols);
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + count, order.end(),
                      [&](int64_t a, int64_t b) { return in[a] > in[b] || (in[a] == in[b] && a < b); });
    for (int64_t i = 0; i < count; ++i) {
      indices[row * count + i] = order[i];
      values[row * count + i] = in[order[i]];
    }
  }
}
