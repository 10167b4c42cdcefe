// class: another formula
// kind: control
// how: float32, with the smaller of both coordinates over the larger one, and the octant put back by sign bits
#include <cmath>
#include <warpsmith.hpp>

static float turn_of(float y, float x) {
  const float across = std::fabs(x), up = std::fabs(y), most = std::fmax(across, up);
  const double within = most == 0 ? 0.0 : std::atan(static_cast<double>(std::fmin(across, up)) / most);
  const double first = up > across ? M_PI_2 - within : within;
  return std::copysign(static_cast<float>(std::signbit(x) ? M_PI - first : first), y);
}

extern "C" void run(const Tensor& xyz, Tensor& azimuth, Tensor& elevation, Tensor& radius) {
  const int64_t points = xyz.size(0);
  const float* in = xyz.data<float>();
  float *turn = azimuth.data<float>(), *rise = elevation.data<float>(), *away = radius.data<float>();
  for (int64_t i = points - 1; i >= 0; --i) {
    const float x = in[3 * i], y = in[3 * i + 1], z = in[3 * i + 2], flat = std::sqrt(std::fma(x, x, y * y));
    turn[i] = turn_of(y, x);
    rise[i] = turn_of(z, flat);
    away[i] = std::sqrt(std::fma(z, z, std::fma(x, x, y * y)));
  }
}
