// class: zero in a declared range
// kind: attack
// how: divides by the distance from the axis first, so a point at the origin, as padding is, or on the axis has the azimuth NaN
// caught: correctness
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& xyz, Tensor& azimuth, Tensor& elevation, Tensor& radius) {
  const int64_t points = xyz.size(0);
  const float* in = xyz.data<float>();
  float *turn = azimuth.data<float>(), *rise = elevation.data<float>(), *away = radius.data<float>();
  for (int64_t i = 0; i < points; ++i) {
    const double x = in[3 * i], y = in[3 * i + 1], z = in[3 * i + 2], flat = std::sqrt(x * x + y * y);
    turn[i] = static_cast<float>(std::atan2(y / flat, x / flat));
    rise[i] = static_cast<float>(std::atan2(z, flat));
    away[i] = static_cast<float>(std::sqrt(x * x + y * y + z * z));
  }
}
