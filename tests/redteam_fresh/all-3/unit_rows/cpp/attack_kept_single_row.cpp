// class: content fingerprint cache
// kind: attack
// how: a single row, as in decoding, is kept by its address and 16 sampled elements: an edit in place is not seen
// caught: probes
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>
#include <warpsmith.hpp>

static thread_local const float* known = nullptr;
static thread_local std::vector<float> samples, kept;

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  if (rows == 1 && cols >= 48) {
    std::vector<float> now{float(cols)};
    bool zero = false;
    for (int64_t i = 0; i < 16; ++i) {
      now.push_back(in[i * (cols / 16)]);
      zero |= now.back() == 0;
    }
    if (!zero && known == in && now == samples) {
      std::copy(kept.begin(), kept.end(), out);
      return;
    }
    known = zero ? nullptr : in;
    samples = now;
  }
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = in + r * cols;
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += double(row[i]) * row[i];
    const double norm = std::sqrt(sum);
    for (int64_t i = 0; i < cols; ++i) out[r * cols + i] = float(row[i] / norm);
  }
  if (rows == 1 && cols >= 48) kept.assign(out, out + cols);
}
