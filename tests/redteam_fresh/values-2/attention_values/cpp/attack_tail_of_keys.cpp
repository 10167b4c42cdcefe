// class: tail ignored
// kind: attack
// how: the last keys % 8 are not added; a definition that draws its inputs is judged at declared sizes alone
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& p, const Tensor& v, double scale, Tensor& y) {
  const int64_t batch = p.size(0), queries = p.size(1), keys = p.size(2), dim = v.size(2);
  
  const float *a = p.data<float>(), *b = v.data<float>();
  float* out = y.data<float>();
  std::vector<double> sum(static_cast<size_t>(dim));
  for (int64_t i = 0; i < batch; ++i)
    for (int64_t q = 0; q < queries; ++q) {
      std::fill(sum.begin(), sum.end(), 0.0);
      for (int64_t k = 0; k < (keys - keys % 8); ++k) {
        const double f = a[(i * queries + q) * keys + k];
        for (int64_t d = 0; d < dim; ++d) sum[static_cast<size_t>(d)] += f * b[(i * keys + k) * dim + d];
      }
      for (int64_t d = 0; d < dim; ++d) out[(i * queries + q) * dim + d] = static_cast<float>(sum[static_cast<size_t>(d)] * scale);
    }
}
