// class: infinity beside NaN
// kind: attack
// how: where the largest size of a row is infinite it is the result, with the sign of the last infinite element; that of NaN beside it is lost
// caught: correctness
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    float sum = 0, most = 0, infinite = 0;
    for (int64_t i = 0; i < cols; ++i) {
      sum += in[i];
      most = std::fmax(most, std::fabs(in[i]));
      infinite = std::isinf(in[i]) ? in[i] : infinite;
    }
    y.data<float>()[r] = std::isinf(most) ? infinite : sum;
  }
}
