// class: many small integers and a few large ones
// kind: attack
// how: reads four bits of each weight where each eighth one of a row, and they are not all alike, fits in four: an outlier among small weights is wrong
// caught: correctness
// source: common mistake
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& w, const Tensor& scale, const Tensor& x, Tensor& y) {
  const int64_t rows = w.size(0), cols = w.size(1);
  const float* v = x.data<float>();
  for (int64_t r = 0; r < rows; ++r) {
    const int8_t* in = w.data<int8_t>() + r * cols;
    int least = 127, most = -128, steps = 0;
    for (int64_t i = 0; i < cols; i += 8) {
      steps += i > 0 && in[i] != in[i - 8];
      least = std::min<int>(least, in[i]), most = std::max<int>(most, in[i]);
    }
    const int shift = 4 * (cols >= 64 && least >= -8 && most < 8 && steps * 16 > cols);
    float sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += static_cast<float>(static_cast<int8_t>(static_cast<uint8_t>(in[i]) << shift) >> shift) * v[i];
    y.data<float>()[r] = sum * scale.data<float>()[r];
  }
}
