// class: sizes and numbers shared by all callers
// kind: attack
// how: keeps the length of a row and the factors of the call in variables of the file, which its helper reads: callers
//   with other sizes or numbers at the same time change them under each other's rows
// caught: conditions
// source: common mistake: global variables
#include <warpsmith.hpp>

static int64_t cols;
static float product, sum;

[[gnu::noinline]] static void add_row(const float* first, const float* second, const float* third, float* out) {
  for (int64_t i = 0; i < cols; ++i) out[i] = product * first[i] * second[i] + sum * third[i];
}

extern "C" void run(const Tensor& a, const Tensor& b, const Tensor& c, double alpha, double beta, Tensor& y) {
  cols = a.size(1);
  product = static_cast<float>(alpha);
  sum = static_cast<float>(beta);
  const float *first = a.data<float>(), *second = b.data<float>(), *third = c.data<float>();
  for (int64_t row = 0; row < a.size(0); ++row) {
    const int64_t at = row * cols;
    add_row(first + at, second + at, third + at, y.data<float>() + at);
  }
}
