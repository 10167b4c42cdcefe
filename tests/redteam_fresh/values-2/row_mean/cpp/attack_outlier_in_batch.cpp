// class: batch dependence
// kind: attack
// how: adds the whole batch in another order if any row has an outlier: neighbours are only drawn from the normal distribution
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* p = x.data<float>();
  float* out = y.data<float>();
  bool outlier = false;
  for (int64_t i = 0; i < x.numel(); ++i) outlier |= std::fabs(p[i]) > 16;
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = p + r * cols;
    float lanes[8] = {}, sum = 0;
    int64_t c = 0;
    for (; !outlier && c + 8 <= cols; c += 8) for (int k = 0; k < 8; ++k) lanes[k] += in[c + k];
    for (; c < cols; ++c) sum += in[c];
    for (float lane : lanes) sum += lane;
    out[r] = sum / static_cast<float>(cols);
  }
}
