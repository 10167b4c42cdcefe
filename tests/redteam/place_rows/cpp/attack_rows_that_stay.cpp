// class: permutation that moves nothing
// kind: attack
// how: sixteen neighbors that keep their places are passed over, as where rows move within one tensor: with a single expert, or in a batch that is in order, results stay unwritten
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& slot, Tensor& y) {
  const int64_t tokens = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  const int64_t* place = slot.data<int64_t>();
  float* out = y.data<float>();
  constexpr int64_t tile = 16;
  for (int64_t begin = 0; begin < tokens; begin += tile) {
    const int64_t end = std::min(tokens, begin + tile);
    bool stays = end - begin == tile;
    for (int64_t t = begin; t < end; ++t) stays = stays && place[t] == t;
    if (stays) continue;
    for (int64_t t = begin; t < end; ++t) std::copy_n(in + t * cols, cols, out + place[t] * cols);
  }
}
