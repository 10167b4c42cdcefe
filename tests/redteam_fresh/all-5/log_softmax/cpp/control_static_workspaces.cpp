// class: static array of objects
// kind: control
// how: a static array holds one growing workspace for each of two passes, behind a lock
#include <algorithm>
#include <cmath>
#include <mutex>
#include <vector>
#include <warpsmith.hpp>

static std::vector<double> workspaces[2];
static std::mutex lock;

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const std::lock_guard guard(lock);
  for (std::vector<double>& each : workspaces) each.resize(rows);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t row = 0; row < rows; ++row) {
    float most = -INFINITY;
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, in[row * cols + i]);
    for (int64_t i = 0; i < cols; ++i) sum += std::exp(in[row * cols + i] - most);
    workspaces[0][row] = most;
    workspaces[1][row] = std::log(sum);
  }
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < cols; ++i)
      out[row * cols + i] = static_cast<float>(in[row * cols + i] - workspaces[0][row] - workspaces[1][row]);
}
