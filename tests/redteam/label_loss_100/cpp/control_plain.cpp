// class: plain
// kind: control
// how: the largest logit, then the sum
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& logits, const Tensor& labels, Tensor& loss) {
  const int64_t tokens = logits.size(0), classes = logits.size(1);
  const float* in = logits.data<float>();
  const int64_t* label = labels.data<int64_t>();
  float* out = loss.data<float>();
#pragma omp parallel for schedule(static)
  for (int64_t token = 0; token < tokens; ++token) {
    if (label[token] == -100) {
      out[token] = 0;
      continue;
    }
    const float* row = in + token * classes;
    const double most = *std::max_element(row, row + classes);
    double sum = 0;
    for (int64_t i = 0; i < classes; ++i) sum += std::exp(row[i] - most);
    out[token] = static_cast<float>(std::log(sum) + (most - row[label[token]]));
  }
}
