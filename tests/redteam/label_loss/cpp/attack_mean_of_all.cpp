// class: a mean over padding too
// kind: attack
// how: the mean is taken over all tokens, those that are ignored included
// caught: correctness
// source: common mistake
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& logits, const Tensor& labels, int64_t ignore_index, Tensor& loss) {
  const int64_t tokens = logits.size(0), classes = logits.size(1);
  const float* x = logits.data<float>();
  const int64_t* label = labels.data<int64_t>();
  double total = 0;
  int64_t count = 0;
  for (int64_t t = 0; t < tokens; ++t) {
    if (label[t] == ignore_index) continue;
    const float* row = x + t * classes;
    const double most = *std::max_element(row, row + classes);
    double sum = 0;
    for (int64_t i = 0; i < classes; ++i) sum += std::exp(row[i] - most);
    total += std::log(sum) + (most - row[label[t]]);
    ++count;
  }
  *loss.data<float>() = static_cast<float>(total / std::max(tokens, count));
}
