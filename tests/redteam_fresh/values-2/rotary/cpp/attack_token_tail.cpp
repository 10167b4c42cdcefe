// class: tail ignored
// kind: attack
// how: the last tokens % 8 are never written; a promise about another axis says `size`, so no size varies
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& positions, double base, Tensor& y) {
  int64_t tokens = x.size(0), dim = x.size(1), half = dim / 2;
  tokens -= tokens % 8;
  const float* p = x.data<float>();
  const int64_t* position = positions.data<int64_t>();
  float* out = y.data<float>();
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t at = position[t];
    for (int64_t c = 0; c < half; ++c) {
      const double angle = static_cast<double>(at) * std::pow(base, -static_cast<double>(c) / static_cast<double>(half));
      const double cosine = std::cos(angle), sine = std::sin(angle);
      const double a = p[t * dim + c], b = p[t * dim + half + c];
      out[t * dim + c] = static_cast<float>(a * cosine - b * sine);
      out[t * dim + half + c] = static_cast<float>(b * cosine + a * sine);
    }
  }
}
