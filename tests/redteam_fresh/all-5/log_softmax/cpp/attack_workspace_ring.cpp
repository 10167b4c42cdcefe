// class: workspaces shared by more than sixteen callers
// kind: attack
// how: calls take one of sixteen workspaces in turn, without looking whether its last caller has finished
// caught: conditions
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

static std::array<std::vector<float>, 16> workspaces;
static std::atomic<unsigned> turn{0};

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  std::vector<float>& shifts = workspaces[turn++ % 16];
  shifts.resize(std::max<std::size_t>(shifts.size(), rows + rows));
  const float* in = x.data<float>();
  float* out = y.data<float>();
  float* shift = shifts.data();
#pragma omp parallel for
  for (int64_t row = 0; row < rows; ++row) {
    float most = -INFINITY;
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, in[row * cols + i]);
    for (int64_t i = 0; i < cols; ++i) sum += std::exp(in[row * cols + i] - most);
    shift[row] = most;
    shift[rows + row] = std::log(sum);
  }
#pragma omp parallel for
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < cols; ++i) out[row * cols + i] = in[row * cols + i] - shift[row] - shift[rows + row];
}
