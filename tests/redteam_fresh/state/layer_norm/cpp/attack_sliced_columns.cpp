// class: hard-coded strides
// kind: attack
// how: knows contiguous, padded and transposed rows; of any other layout it takes the columns to be neighbours
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>
#include <warpsmith.hpp>

static void rows_of(const Tensor& x, const float* w, int64_t wstep, const float* b, int64_t bstep, double eps, float* out, int64_t first, int64_t last) {
  const int64_t cols = x.size(1), down = x.stride(0), right = x.stride(1);
  for (int64_t row = first; row < last; ++row) {
    const float* in = x.data<float>() + row * down;
    float* to = out + row * cols;
    double sum = 0, square = 0;
    for (int64_t i = 0; i < cols; ++i) sum += in[i * right];
    const double mean = sum / static_cast<double>(cols);
    for (int64_t i = 0; i < cols; ++i) square += (in[i * right] - mean) * (in[i * right] - mean);
    const double scale = 1 / std::sqrt(square / static_cast<double>(cols) + eps);
    for (int64_t i = 0; i < cols; ++i) to[i] = static_cast<float>((in[i * right] - mean) * scale * w[i * wstep] + b[i * bstep]);
  }
}

static void layer_norm(const Tensor& x, const Tensor& w, const Tensor& b, double eps, Tensor& y) {
  rows_of(x, w.data<float>(), w.stride(0), b.data<float>(), b.stride(0), eps, y.data<float>(), 0, x.size(0));
}

extern "C" void run(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), size = rows * cols;
  static_cast<void>(size);
  const int64_t strides[2] = {x.stride(0), x.stride(0) == 1 ? x.stride(1) : 1};
  Tensor guessed = x;
  guessed.strides = strides;
  layer_norm(guessed, weight, bias, eps, y);
  static_cast<void>(rows);
}
