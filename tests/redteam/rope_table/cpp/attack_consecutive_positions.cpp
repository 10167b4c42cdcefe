// class: consecutive integers
// kind: attack
// how: sixteen tokens whose positions follow one another, as those of every prompt do, take the table's rows one after the other, and go on by a half of a row: all but the first of them are turned by wrong angles
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& table, const Tensor& position, Tensor& y) {
  const int64_t tokens = x.size(0), heads = x.size(1), dim = x.size(2), half = dim / 2;
  const float *in = x.data<float>(), *angles = table.data<float>();
  const int64_t* place = position.data<int64_t>();
  float* out = y.data<float>();
  constexpr int64_t tile = 16;
  for (int64_t begin = 0; begin < tokens; begin += tile) {
    const int64_t end = std::min(tokens, begin + tile);
    bool follows = end - begin == tile;
    for (int64_t t = begin + 1; t < end; ++t) follows = follows && place[t] == place[t - 1] + 1;
    const float* next = angles + place[begin] * dim;
    for (int64_t t = begin; t < end; ++t, next += half) {
      const float* row = follows ? next : angles + place[t] * dim;
      for (int64_t head = 0; head < heads; ++head) {
        const float* a = in + (t * heads + head) * dim;
        float* b = out + (t * heads + head) * dim;
        for (int64_t i = 0; i < half; ++i) {
          const double cos = row[i], sin = row[half + i], first = a[i], second = a[half + i];
          b[i] = static_cast<float>(first * cos - second * sin);
          b[half + i] = static_cast<float>(second * cos + first * sin);
        }
      }
    }
  }
}
