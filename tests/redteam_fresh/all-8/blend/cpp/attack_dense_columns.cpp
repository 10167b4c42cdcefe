// class: view that is transposed and sliced at once
// kind: attack
// how: an input whose rows are nearest to each other in memory is read as a transposed one, with columns that are
//   dense; those of a slice of a transposed tensor are not
// caught: correctness
// source: common mistake: a leading dimension describes a matrix, and a second step is forgotten
#include <warpsmith.hpp>

namespace {

// One plane, by rows or by columns, whichever is nearer in memory.
template <typename Use> void visit(const float* plane, const Tensor& x, const Use& use) {
  const int64_t rows = x.size(1), cols = x.size(2);
  const int64_t down = x.stride(1), across = x.stride(2);
  const bool by_columns = down != 0 && down < across && down < x.stride(0);
  if (by_columns) {
    for (int64_t c = 0; c < cols; ++c) {
      const float* column = plane + c * across;
      for (int64_t r = 0; r < rows; ++r) use(r * cols + c, column[r]);
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) use(r * cols + c, plane[r * down + c * across]);
}

}  // namespace

extern "C" void run(const Tensor& a, const Tensor& b, double alpha, double beta, Tensor& y) {
  const int64_t batch = a.size(0), size = a.size(1) * a.size(2);
  const float *first = a.data<float>(), *second = b.data<float>();
  const float of_first = static_cast<float>(alpha), of_second = static_cast<float>(beta);
  float* out = y.data<float>();
  for (int64_t plane = 0; plane < batch; ++plane) {
    float* to = out + plane * size;
    visit(first + plane * a.stride(0), a, [=](int64_t place, float value) { to[place] = of_first * value; });
    visit(second + plane * b.stride(0), b, [=](int64_t place, float value) { to[place] += of_second * value; });
  }
}
