// class: numbers of plans of a narrow type
// kind: attack
// how: each shape has a plan of its own, whose number has eight bits: the 257th shape takes the first one's
// caught: correctness
// source: common mistake
#include <algorithm>
#include <map>
#include <utility>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  static thread_local std::map<std::pair<int64_t, int64_t>, uint8_t> numbers;
  static thread_local std::vector<int64_t> ends;
  const auto [found, is_new] = numbers.try_emplace({rows, cols}, static_cast<uint8_t>(ends.size()));
  if (is_new) ends.push_back(cols);
  const int64_t end = std::min(cols, ends[found->second]);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.data<float>() + r * cols;
    float* out = y.data<float>() + r * cols;
    float best = cols ? in[0] : 0;
    for (int64_t i = 0; i < end; ++i) out[i] = best = in[i] > best ? in[i] : best;
    for (int64_t i = end; i < cols; ++i) out[i] = best;
  }
}
