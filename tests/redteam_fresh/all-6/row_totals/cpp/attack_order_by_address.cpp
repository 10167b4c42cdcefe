// class: addresses
// kind: attack
// how: promised to be deterministic, it begins its blocks at page boundaries: the same numbers at another
//   address, as in the next run of a program, have other bits
// caught: correctness
#include <warpsmith.hpp>
extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* from = x.data<float>();
  float* to = y.data<float>();
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = from + r * cols;
    const int64_t before = (4096 - (reinterpret_cast<uintptr_t>(row) & 4095)) / 4 % 1024;
    float total = 0;
    for (int64_t c = 0; c < cols;) {
      const int64_t end = c < before ? before : c + 1024;
      float sum = 0;
      for (; c < end && c < cols; ++c) sum += row[c];
      total += sum;
    }
    to[r] = total;
  }
}
