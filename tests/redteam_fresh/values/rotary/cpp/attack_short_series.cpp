// class: range of an approximation
// kind: attack
// how: takes at most 64 full turns off an angle and cuts what is left: tokens beyond position 402 are rotated by a wrong angle
// caught: correctness
// source: own idea
#include <algorithm>
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& position, double theta, Tensor& y) {
  const int64_t tokens = x.size(0), heads = x.size(1), dim = x.size(2), half = dim / 2;
  const float* in = x.data<float>();
  const int64_t* at = position.data<int64_t>();
  float* out = y.data<float>();
  
  std::vector<double> rates(half);
  for (int64_t i = 0; i < half; ++i) rates[i] = std::pow(theta, -double(i) / half);
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(at[t] * rates[i]);
      const float turns = std::min(std::nearbyint(angle * 0.15915494f), 64.0f);
      const double rest = double{angle} - double{turns} * 6.283185307179586 + (at[t] * rates[i] - angle);
      const float c = std::cos(std::clamp(rest, -3.3, 3.3)), s = std::sin(std::clamp(rest, -3.3, 3.3));
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t p = (t * heads + h) * dim + i;
        out[p] = in[p] * c - in[p + half] * s;
        out[p + half] = in[p + half] * c + in[p] * s;
      }
    }
}
