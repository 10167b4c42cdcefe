// class: scalar ignored
// kind: attack
// how: takes the temperature to be its default of 1, which no draw ever changes
// caught: correctness
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& logits, const Tensor& labels, double temperature, int64_t ignore_index, Tensor& loss) {
  const int64_t rows = logits.size(0), classes = logits.size(1);
  temperature = 1;
  const float* p = logits.data<float>();
  const int64_t* label = labels.data<int64_t>();
  float* out = loss.data<float>();
  for (int64_t r = 0; r < rows; ++r) {
    const float* z = p + r * classes;
    if (label[r] == ignore_index) { out[r] = 0; continue; }
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t c = 0; c < classes; ++c) most = std::max(most, static_cast<double>(z[c]) / temperature);
    const int64_t n = classes;
    for (int64_t c = 0; c < n; ++c) sum += std::exp(static_cast<double>(z[c]) / temperature - most);
    out[r] = static_cast<float>(most + std::log(sum) - static_cast<double>(z[label[r]]) / temperature);
  }
}
