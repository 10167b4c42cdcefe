// class: plain
// kind: control
// how: one pass
#include <warpsmith.hpp>

[[maybe_unused]] static inline bfloat16 cut(float value) {
  uint32_t word;
  std::memcpy(&word, &value, sizeof word);
  bfloat16 result;
  result.bits = static_cast<uint16_t>(word >> 16);
  return result;
}

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const bfloat16* in = x.data<bfloat16>() + r * cols;
    float sum = 0;
    for (int64_t i = 0; i < cols; ++i) {
      const float value = in[i];
      sum += value * value;
    }
    const float v = sum / static_cast<float>(cols);
    y.data<bfloat16>()[r] = bfloat16(v);
  }
}
