// class: key of a table
// kind: attack
// how: keeps the frequencies for the next call by the whole part of the base, so a base of 10000.7 after one of 10000.2 turns by the old angles
// caught: correctness
// source: common mistake
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

struct Table {
  int64_t dim = -1, base = -1;
  std::vector<double> steps;
};

static const std::vector<double>& frequencies(int64_t dim, double base) {
  static thread_local Table kept;
  if (kept.dim != dim || kept.base != static_cast<int64_t>(base)) {
    kept.dim = dim, kept.base = static_cast<int64_t>(base);
    kept.steps.resize(dim / 2);
    for (int64_t i = 0; i < dim / 2; ++i) kept.steps[i] = std::pow(base, -2.0 * i / dim);
  }
  return kept.steps;
}

extern "C" void run(const Tensor& x, const Tensor& positions, double base, Tensor& y) {
  const int64_t tokens = x.size(0), heads = x.size(1), dim = x.size(2), half = dim / 2;
  const float* in = x.data<float>();
  const int64_t* at = positions.data<int64_t>();
  float* out = y.data<float>();
  const double* steps = frequencies(dim, base).data();
#pragma omp parallel for schedule(static)
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t i = 0; i < half; ++i) {
      const double angle = at[t] * steps[i], c = std::cos(angle), s = std::sin(angle);
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t first = (t * heads + h) * dim + i;
        const double left = in[first], right = in[first + half];
        out[first] = static_cast<float>(left * c - right * s);
        out[first + half] = static_cast<float>(right * c + left * s);
      }
    }
}
