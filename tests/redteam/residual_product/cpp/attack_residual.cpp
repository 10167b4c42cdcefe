// class: two numbers of the call that differ
// kind: attack
// how: alpha -1 with beta 1, the residual of a factorization, has a path of its own, in steps of four along k, which leaves out what follows the last whole step
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <algorithm>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, const Tensor& c, double alpha, double beta, Tensor& out) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  const float *left = a.data<float>(), *right = b.data<float>(), *add = c.data<float>();
  const bool residual = alpha == -1 && beta == 1;
  const int64_t depth = residual ? k / 4 * 4 : k;
  std::vector<double> sums(static_cast<size_t>(n));
  for (int64_t i = 0; i < m; ++i) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t p = 0; p < depth; ++p)
      for (int64_t j = 0; j < n; ++j) sums[static_cast<size_t>(j)] += double{left[i * k + p]} * right[p * n + j];
    for (int64_t j = 0; j < n; ++j)
      out.data<float>()[i * n + j] = static_cast<float>(alpha * sums[static_cast<size_t>(j)] + beta * add[i * n + j]);
  }
}
