// class: ids that are nearly consecutive
// kind: attack
// how: copies one block where a sample of the ids says that they are consecutive: of positions with a few exceptions these are wrong
// caught: correctness
#include <cstring>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& table, const Tensor& ids, Tensor& y) {
  const int64_t tokens = ids.size(0), width = table.size(1), rows = table.size(0);
  const int64_t* id = ids.data<int64_t>();
  bool consecutive = tokens > 8 && id[0] + tokens <= rows;
  for (int64_t k = 0; k < 17 && tokens > 0; ++k) {
    const int64_t t = k * (tokens - 1) / 16;
    consecutive &= id[t] == id[0] + t;
  }
  const int64_t block = consecutive;
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t row = block * (id[0] + t) + (1 - block) * id[t];
    std::memcpy(y.data<float>() + t * width, table.data<float>() + row * width, width * 4);
  }
}
