// class: table for each thread
// kind: control
// how: each thread counts in a table of its own, however many threads the region has, and adds it at the end
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& pixels, Tensor& counts) {
  const int64_t count = pixels.size(0), bins = counts.size(0);
  const uint8_t* in = pixels.data<uint8_t>();
  int64_t* out = counts.data<int64_t>();
  std::fill(out, out + bins, 0);
#pragma omp parallel
  {
    int64_t table[256] = {};
#pragma omp for
    for (int64_t i = 0; i < count; ++i) ++table[in[i]];
    for (int64_t b = 0; b < bins; ++b)
#pragma omp atomic
      out[b] += table[b];
  }
}
