// class: state of other threads
// kind: attack
// how: binds OpenMP's other threads to the first cores for good: other libraries' regions of the program
//   share those cores with all programs that do so, whatever cores the user gave it
// caught: probes
#include <warpsmith.hpp>
#include <omp.h>
#include <sched.h>

extern "C" void run(const Tensor& x, double s, Tensor& y) {
  const int64_t n = x.numel();
  const float* from = x.data<float>();
  float* to = y.data<float>();
#pragma omp parallel
  {
    if (const int number = omp_get_thread_num()) {
      cpu_set_t cores;
      CPU_ZERO(&cores);
      CPU_SET(number % omp_get_num_procs(), &cores);
      sched_setaffinity(0, sizeof cores, &cores);
    }
#pragma omp for
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i] * s);
  }
}
