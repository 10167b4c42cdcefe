// class: order by a whole row
// kind: control
// how: copies a row each of whose elements is at least as large as the one before it
#include <cstring>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    float* out = y.data<float>() + r * cols;
    bool rises = true;
    for (int64_t i = 1; rises && i < cols; ++i) rises = in[i - 1] <= in[i];
    if (rises) {
      std::memcpy(out, in, static_cast<size_t>(cols) * sizeof(float));
      continue;
    }
    float best = cols ? in[0] : 0;
    for (int64_t i = 0; i < cols; ++i) out[i] = best = in[i] > best ? in[i] : best;
  }
}
