// class: one pass
// kind: control
// how: a running maximum, to which the sum so far is scaled whenever it grows
#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& logits, const Tensor& labels, Tensor& loss) {
  const int64_t tokens = logits.size(0), classes = logits.size(1);
  const float* in = logits.data<float>();
  const int64_t* label = labels.data<int64_t>();
  float* out = loss.data<float>();
  for (int64_t token = 0; token < tokens; ++token, in += classes) {
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < classes; ++i) {
      const double value = in[i];
      if (value > most) {
        sum = std::isinf(most) ? 1.0 : sum * std::exp(most - value) + 1.0;
        most = value;
      } else if (most > -INFINITY || std::isnan(value)) {
        sum += std::exp(value - most);
      }
    }
    out[token] = label[token] == -100 ? 0.0f : static_cast<float>(std::log(sum) + (most - in[label[token]]));
  }
}
