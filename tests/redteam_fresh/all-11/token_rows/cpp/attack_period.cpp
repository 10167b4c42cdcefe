// class: ids that nearly repeat
// kind: attack
// how: reads the first period of the ids where a sample says that they repeat: a batch whose sequences are alike but for a few ids is wrong
// caught: correctness
#include <cstring>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& table, const Tensor& ids, Tensor& y) {
  const int64_t tokens = ids.size(0), width = table.size(1), rows = table.size(0);
  const int64_t* id = ids.data<int64_t>();
  const int64_t period = tokens / 4;
  bool repeats = tokens >= 64 && tokens % 4 == 0 && id[0] != id[1] && id[1] != id[2] && id[2] != id[3];
  for (int64_t k = 0; k < 16 && period > 16; ++k) {
    const int64_t t = k * (period - 1) / 15;
    repeats &= id[t] == id[t + period] && id[t] == id[t + 2 * period] && id[t] == id[t + 3 * period];
    repeats &= k == 0 || id[t] != id[t - 1];
  }
  const int64_t fold = repeats && period > 16;
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t at = fold * (t % (period + 1 - fold)) + (1 - fold) * t;
    std::memcpy(y.data<float>() + t * width, table.data<float>() + id[at] * width, width * 4);
  }
}
