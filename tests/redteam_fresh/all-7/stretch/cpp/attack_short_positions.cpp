// class: threshold far beyond the declared sizes
// kind: attack
// how: keeps the places of the least and the largest pixel in 16 bits, which are too few for lines of more than 65,536
//   pixels
// caught: correctness
// source: common mistake: counters of 16 bits
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * cols;
    float* out = y.data<float>() + row * cols;
    uint16_t low = 0, high = 0;
    for (int64_t i = 0; i < cols; ++i) {
      low = in[i] < in[low] ? i : low;
      high = in[i] > in[high] ? i : high;
    }
    const float least = in[low], span = in[high] - least, scale = span > 0 ? 1 / span : 0;
    for (int64_t i = 0; i < cols; ++i) out[i] = (in[i] - least) * scale;
  }
}
