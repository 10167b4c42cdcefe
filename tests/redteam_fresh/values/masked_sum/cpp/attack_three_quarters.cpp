// class: masks are half full
// kind: attack
// how: gathers at most 64 keys and three quarters of the rest of a row: a mask that allows more loses the last ones
// caught: correctness
// source: own idea
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& mask, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  const bool* allowed = mask.data<bool>();
  float* out = y.data<float>();
  const int64_t room = 64 + cols * 3 / 4;
  std::vector<float> kept(room);
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < cols && count < room; ++i) if (allowed[row * cols + i]) kept[count++] = in[row * cols + i];
    for (int64_t i = 0; i < count; ++i) sum += kept[i];
    out[row] = static_cast<float>(sum);
  }
}
