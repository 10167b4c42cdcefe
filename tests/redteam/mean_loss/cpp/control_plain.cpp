// class: plain
// kind: control
// how: adds up in double precision
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& logits, const Tensor& labels, int64_t ignore_index, Tensor& loss) {
  const int64_t tokens = logits.size(0), classes = logits.size(1);
  const float* row = logits.data<float>();
  double total = 0;
  int64_t labeled = 0;
  for (int64_t token = 0; token < tokens; ++token, row += classes) {
    const int64_t label = labels.data<int64_t>()[token];
    if (label == ignore_index) continue;
    const double most = *std::max_element(row, row + classes);
    double sum = 0;
    for (int64_t i = 0; i < classes; ++i) sum += std::exp(row[i] - most);
    total += std::log(sum) + (most - row[label]);
    ++labeled;
  }
  *loss.data<float>() = static_cast<float>(total / static_cast<double>(std::max<int64_t>(labeled, 1)));
}
