// class: plain loops
// kind: control
// how: one pass after the other
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& t, Tensor& loss) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const bfloat16 *a = x.data<bfloat16>(), *b = t.data<bfloat16>();
  double sum = 0;
  int64_t count = 0;
  
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < cols; ++i, ++count) {
      const float d = float(a[row * cols + i]) - float(b[row * cols + i]);
      sum += d * d;
    }
  }
  *loss.data<bfloat16>() = bfloat16(static_cast<float>(sum / count));
}
