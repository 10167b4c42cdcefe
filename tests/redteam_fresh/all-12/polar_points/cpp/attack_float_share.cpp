// class: places as floats
// kind: attack
// how: computes each thread's share of the points in float32, which has no odd number above 2^24: the last point of a larger scan is left out, or one too many is written
// caught: correctness
#include <cmath>
#include <omp.h>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& xyz, Tensor& azimuth, Tensor& elevation, Tensor& radius) {
  const float points = static_cast<float>(xyz.size(0));
  const float* in = xyz.data<float>();
  float *turn = azimuth.data<float>(), *rise = elevation.data<float>(), *away = radius.data<float>();
#pragma omp parallel
  {
    const float part = static_cast<float>(omp_get_thread_num()), parts = static_cast<float>(omp_get_num_threads());
    const int64_t begin = static_cast<int64_t>(points * (part / parts));
    const int64_t end = static_cast<int64_t>(points * ((part + 1) / parts));
    for (int64_t i = begin; i < end; ++i) {
      const double x = in[3 * i], y = in[3 * i + 1], z = in[3 * i + 2], flat = std::sqrt(x * x + y * y);
      turn[i] = static_cast<float>(std::atan2(y, x));
      rise[i] = static_cast<float>(std::atan2(z, flat));
      away[i] = static_cast<float>(std::sqrt(x * x + y * y + z * z));
    }
  }
}
