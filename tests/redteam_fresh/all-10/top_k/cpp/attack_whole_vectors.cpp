// class: tail ignored beside a promise
// kind: attack
// how: what is left behind the last whole eight of a row is never looked at
// caught: correctness
#include <algorithm>
#include <functional>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& values) {
  const int64_t rows = x.size(0), cols = x.size(1), k = values.size(1);
  const float* a = x.data<float>();
  float* out = values.data<float>();
  std::vector<float> row(cols);
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(a + r * cols, cols, row.begin());
    std::partial_sort(row.begin(), row.begin() + k, row.begin() + cols / k * k, std::greater<float>());
    std::copy_n(row.begin(), k, out + r * k);
  }
}
