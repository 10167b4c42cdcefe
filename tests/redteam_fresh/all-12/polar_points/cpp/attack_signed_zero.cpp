// class: sign of zero
// kind: attack
// how: finds the quadrant by y >= 0, so -0.0 left of the origin turns by +pi and not by -pi
// caught: correctness
#include <cmath>
#include <warpsmith.hpp>

static double angle(double y, double x) {
  if (x == 0 && y == 0) return 0;
  if (x == 0) return y > 0 ? M_PI_2 : -M_PI_2;
  const double within = std::atan(y / x);
  if (x > 0) return within;
  return y >= 0 ? within + M_PI : within - M_PI;
}

extern "C" void run(const Tensor& xyz, Tensor& azimuth, Tensor& elevation, Tensor& radius) {
  const int64_t points = xyz.size(0);
  const float* in = xyz.data<float>();
  float *turn = azimuth.data<float>(), *rise = elevation.data<float>(), *away = radius.data<float>();
  for (int64_t i = 0; i < points; ++i) {
    const double x = in[3 * i], y = in[3 * i + 1], z = in[3 * i + 2], flat = std::sqrt(x * x + y * y);
    turn[i] = static_cast<float>(angle(y, x));
    rise[i] = static_cast<float>(std::atan2(z, flat));
    away[i] = static_cast<float>(std::sqrt(x * x + y * y + z * z));
  }
}
