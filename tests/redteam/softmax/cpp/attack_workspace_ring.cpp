// class: workspaces shared by more than sixteen callers
// kind: attack
// how: calls take one of sixteen workspaces in turn, without looking whether its last caller has finished
// caught: conditions
// source: common mistake
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

static std::array<std::vector<double>, 16> workspaces;
static std::atomic<unsigned> turn{0};

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  std::vector<double>& sums = workspaces[turn++ % 16];
  if (sums.size() < static_cast<std::size_t>(rows)) sums.resize(rows);
  const float* in = x.data<float>();
  float* out = y.data<float>();
#pragma omp parallel for
  for (int64_t row = 0; row < rows; ++row) {
    float most = -INFINITY;
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) {
      const float value = in[row * cols + i];
      most = std::isnan(value) ? value : std::max(most, value);
    }
    for (int64_t i = 0; i < cols; ++i) sum += out[row * cols + i] = std::exp(in[row * cols + i] - most);
    sums[row] = sum;
  }
#pragma omp parallel for
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < cols; ++i) out[row * cols + i] = static_cast<float>(out[row * cols + i] / sums[row]);
}
