// class: plain loops
// kind: control
// how: row of x times row of w
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& w, const Tensor& scale, Tensor& y) {
  const int64_t m = x.size(0), k = x.size(1), n = w.size(1);
  const int8_t* bytes = w.data<int8_t>();
  
  std::vector<float> row(static_cast<size_t>(n));
  for (int64_t i = 0; i < m; ++i) {
    std::fill(row.begin(), row.end(), 0.0f);
    for (int64_t p = 0; p < k; ++p) {
      const float each = x.data<float>()[i * k + p];
      for (int64_t j = 0; j < n; ++j) row[static_cast<size_t>(j)] += each * static_cast<float>(bytes[p * n + j]);
    }
    for (int64_t j = 0; j < n; ++j) y.data<float>()[i * n + j] = row[static_cast<size_t>(j)] * scale.data<float>()[j];
  }
}
