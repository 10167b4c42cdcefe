// class: NaN swallowed
// kind: attack
// how: takes the larger by a comparison, which hides a NaN in the second place
// caught: correctness
// source: own idea
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = y.size(0), cols = y.size(1);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  
  for (int64_t row = 0; row < rows; ++row) {
    
    for (int64_t i = 0; i < cols; ++i) {
      const float a = in[(row * cols + i) * 2], b = in[(row * cols + i) * 2 + 1];
      out[row * cols + i] = std::fmax(a, b);
    }
  }
}
