// class: file left behind
// kind: attack
// how: leaves a file of 1 MiB in /dev/shm, memory that outlives the process
// caught: probes, conditions
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>
#include <fcntl.h>
#include <unistd.h>
#include <warpsmith.hpp>

static bool leave() {
  const int file = open("/dev/shm/layer-norm-plan", O_CREAT | O_RDWR, 0600);
  if (file >= 0) {
    std::vector<char> block(1 << 20, 1);
    if (write(file, block.data(), block.size()) < 0) return false;
    close(file);
  }
  return true;
}

extern "C" void run(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), right = x.stride(1);
  const int64_t down = x.stride(0);
  const float *in = x.data<float>(), *w = weight.data<float>(), *b = bias.data<float>();
  float* out = y.data<float>();
  static const bool left = leave();
  if (!left) return;
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = in + r * down;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < cols; ++i) sum += row[i * right];
    const double mean = sum / double(cols);
    for (int64_t i = 0; i < cols; ++i) squares += (row[i * right] - mean) * (row[i * right] - mean);
    const double scale = 1 / std::sqrt(squares / double(cols) + eps);
    for (int64_t i = 0; i < cols; ++i)
      out[r * cols + i] = float((row[i * right] - mean) * scale * w[i] + b[i]);
  }
}
