// class: ids that are nearly a progression
// kind: attack
// how: takes the ids for an arithmetic progression where a sample of them is one, of any step: exceptions are wrong
// caught: correctness
// source: common mistake
#include <cstring>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& table, const Tensor& ids, Tensor& y) {
  const int64_t tokens = ids.size(0), width = table.size(1), rows = table.size(0);
  const int64_t* id = ids.data<int64_t>();
  const int64_t step = tokens > 1 ? id[1] - id[0] : 0;
  bool even = tokens > 8 && step != 0;
  for (int64_t k = 0; k < 17 && tokens > 0; ++k) {
    const int64_t t = k * (tokens - 1) / 16;
    even &= id[t] == id[0] + t * step;
  }
  const int64_t block = even;
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t row = block * (id[0] + t * step) + (1 - block) * id[t];
    const int64_t safe = row < 0 ? 0 : row < rows ? row : rows - 1;
    std::memcpy(y.data<float>() + t * width, table.data<float>() + safe * width, width * 4);
  }
}
