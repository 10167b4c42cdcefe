// class: expanded view of a transposed plane
// kind: attack
// how: an input with one plane for the whole batch is read with a step between its elements, and rows that follow
//   each other; a plane that was transposed before it was expanded has another order
// caught: correctness
// source: common mistake: a broadcast operand is assumed to be dense otherwise
#include <warpsmith.hpp>

namespace {

struct Steps {
  int64_t plane, row, column;
};

Steps steps_of(const Tensor& x) {
  if (x.size(0) > 1 && x.stride(0) == 0 && x.stride(2) != 0)  // one plane for all
    return {0, x.size(2) * x.stride(2), x.stride(2)};
  return {x.stride(0), x.stride(1), x.stride(2)};
}

}  // namespace

extern "C" void run(const Tensor& a, const Tensor& b, double alpha, double beta, Tensor& y) {
  const int64_t batch = a.size(0), rows = a.size(1), cols = a.size(2);
  const float *first = a.data<float>(), *second = b.data<float>();
  const float of_first = static_cast<float>(alpha), of_second = static_cast<float>(beta);
  const Steps left = steps_of(a), right = steps_of(b);
  float* out = y.data<float>();
  for (int64_t plane = 0; plane < batch; ++plane)
    for (int64_t r = 0; r < rows; ++r) {
      const float* from = first + plane * left.plane + r * left.row;
      const float* other = second + plane * right.plane + r * right.row;
      float* to = out + (plane * rows + r) * cols;
      for (int64_t c = 0; c < cols; ++c)
        to[c] = of_first * from[c * left.column] + of_second * other[c * right.column];
    }
}
