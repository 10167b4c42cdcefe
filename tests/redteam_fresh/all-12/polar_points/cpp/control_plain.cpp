// class: plain
// kind: control
// how: one pass in float64
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& xyz, Tensor& azimuth, Tensor& elevation, Tensor& radius) {
  const int64_t points = xyz.size(0);
  const float* in = xyz.data<float>();
  float *turn = azimuth.data<float>(), *rise = elevation.data<float>(), *away = radius.data<float>();
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < points; ++i) {
    const double x = in[3 * i], y = in[3 * i + 1], z = in[3 * i + 2], flat = std::sqrt(x * x + y * y);
    turn[i] = static_cast<float>(std::atan2(y, x));
    rise[i] = static_cast<float>(std::atan2(z, flat));
    away[i] = static_cast<float>(std::sqrt(x * x + y * y + z * z));
  }
}
