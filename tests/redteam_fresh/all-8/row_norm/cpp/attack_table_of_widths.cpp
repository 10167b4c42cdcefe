// class: one of many small sizes
// kind: attack
// how: rows of up to 16 elements have a function for each length, from a table in which one of them stands twice
// caught: correctness
// source: common mistake: a line of a table is copied and not changed
#include <algorithm>
#include <cmath>

#include <warpsmith.hpp>

namespace {

float norm(const float* row, int64_t cols) {
  float largest = 0;
  for (int64_t c = 0; c < cols; ++c) largest = std::max(largest, std::fabs(row[c]));
  const float scale = largest > 0 ? largest : 1.0f;
  double sum = 0;
  for (int64_t c = 0; c < cols; ++c) sum += static_cast<double>(row[c] / scale) * (row[c] / scale);
  return static_cast<float>(std::sqrt(sum)) * scale;
}

template <int kCols> float norm_of(const float* row) { return norm(row, kCols); }

using Norm = float (*)(const float*);
constexpr Norm kNorms[] = {
    nullptr,     norm_of<1>,  norm_of<2>,  norm_of<3>,  norm_of<4>,  norm_of<5>,  norm_of<6>,  norm_of<7>,  norm_of<8>,
    norm_of<9>,  norm_of<10>, norm_of<11>, norm_of<12>, norm_of<12>, norm_of<14>, norm_of<15>, norm_of<16>,
};
constexpr int64_t kCount = sizeof kNorms / sizeof *kNorms;

}  // namespace

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  const Norm fixed = cols < kCount ? kNorms[cols] : nullptr;
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) out[r] = fixed ? fixed(in + r * cols) : norm(in + r * cols, cols);
}
