// class: two passes
// kind: control
// how: the largest value first, over 16 lanes, then the first place that holds it
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& index) {
  const int64_t rows = x.size(0), cols = x.size(1);
  constexpr int64_t lanes = 16;
  const float* in = x.data<float>();
  int64_t* out = index.data<int64_t>();
  for (int64_t row = 0; row < rows; ++row, in += cols) {
    float most[lanes];
    std::fill_n(most, lanes, -INFINITY);
    int64_t i = 0;
    for (; i + lanes <= cols; i += lanes)
      for (int64_t lane = 0; lane < lanes; ++lane)
        if (in[i + lane] > most[lane]) most[lane] = in[i + lane];
    for (; i < cols; ++i) most[0] = std::max(most[0], in[i]);
    const float largest = *std::max_element(most, most + lanes);
    out[row] = std::find(in, in + cols, largest) - in;
  }
}
