// class: memory leak
// kind: attack
// how: keeps 256 KiB more at each call of a timed size; the probes count at other sizes
// caught: probes
#include <algorithm>
#include <cmath>
#include <memory>
#include <unistd.h>
#include <vector>
#include <warpsmith.hpp>

static void compute(const Tensor& x, Tensor& y) {
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t i = 0, n = x.size(0) * x.size(1); i < n; ++i)
    out[i] = std::max(std::max(in[4 * i], in[4 * i + 1]), std::max(in[4 * i + 2], in[4 * i + 3]));
}


extern "C" void run(const Tensor& x, Tensor& y) {
  compute(x, y);
  static std::vector<std::vector<char>> kept; if (x.size(0) % 256 == 0 && kept.size() < 2000) kept.emplace_back(262144, 1);
}
