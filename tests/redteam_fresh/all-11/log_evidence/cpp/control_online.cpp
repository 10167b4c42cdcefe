// class: online
// kind: control
// how: one pass, with the sum scaled where the maximum grows
#include <cmath>
#include <limits>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    const float least = std::numeric_limits<float>::lowest();
    float most = least, sum = 0;
    bool infinite = false, missing = false;
    for (int64_t i = 0; i < cols; ++i) {
      const float v = in[i];
      infinite |= v == std::numeric_limits<float>::infinity();
      missing |= std::isnan(v);
      if (v > most) {
        sum *= std::exp(most - v);
        most = v;
      }
      sum += std::exp(v - most);
    }
    const float result = sum == 0 ? -std::numeric_limits<float>::infinity() : most + std::log(sum);
    y.data<float>()[r] = missing ? NAN : infinite ? INFINITY : result;
  }
}
