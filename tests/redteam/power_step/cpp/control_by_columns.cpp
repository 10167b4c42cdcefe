// class: another order
// kind: control
// how: column by column, into sums in double
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& x, Tensor& y) {
  const int64_t n = a.size(0);
  std::vector<double> sums(n, 0.0);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<double>(a.data<float>()[i * n + j]) * x.data<float>()[j];
  for (int64_t i = 0; i < n; ++i) y.data<float>()[i] = static_cast<float>(sums[i]);
}
