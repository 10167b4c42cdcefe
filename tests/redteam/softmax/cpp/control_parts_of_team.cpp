// class: parts of a row for the team that came
// kind: control
// how: parts of a row's sum in a workspace for as many threads as the region has, whatever was promised; it lies on the heap
#include <algorithm>
#include <cmath>
#include <omp.h>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  std::vector<double> parts(omp_get_max_threads());
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * cols;
    float* out = y.data<float>() + row * cols;
    float most = -INFINITY;
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::isnan(in[i]) ? in[i] : std::max(most, in[i]);
    std::fill(parts.begin(), parts.end(), 0.0);
#pragma omp parallel if (cols > 4096)
    {
      const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
      double part = 0;
      for (int64_t i = thread * cols / team; i < (thread + 1) * cols / team; ++i)
        part += out[i] = std::exp(in[i] - most);
      parts[thread] = part;
    }
    for (double part : parts) sum += part;
    for (int64_t i = 0; i < cols; ++i) out[i] = static_cast<float>(out[i] / sum);
  }
}
