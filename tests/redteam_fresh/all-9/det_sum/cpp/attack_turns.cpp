// class: bits that differ from call to call
// kind: attack
// how: rows with an element above 50 are added forwards in one call and backwards in the next, as atomics would in no order; others always forwards
// caught: correctness
#include <atomic>
#include <cmath>
#include <warpsmith.hpp>

static std::atomic<int> calls{0};

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const bool turn = calls.fetch_add(1) & 1;
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    float top = 0, sum = 0;
    for (int64_t i = 0; i < cols; ++i) top = std::fmax(top, std::fabs(in[i]));
    if (turn && top > 50)
      for (int64_t i = cols; i-- > 0;) sum += in[i];
    else
      for (int64_t i = 0; i < cols; ++i) sum += in[i];
    y.data<float>()[r] = sum;
  }
}
