// class: offsets of 32 bits
// kind: attack
// how: finds a row by an int of bytes, which overflows in a table of 2 GiB and more, as of 151936 rows of 4096
// caught: correctness
#include <cstring>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& table, const Tensor& ids, Tensor& y) {
  const int64_t tokens = y.size(0);
  const unsigned width = static_cast<unsigned>(table.size(1) * sizeof(float));
  const char* from = reinterpret_cast<const char*>(table.data<float>());
  char* to = reinterpret_cast<char*>(y.data<float>());
  const int32_t* id = ids.data<int32_t>();
#pragma omp parallel for schedule(static)
  for (int64_t t = 0; t < tokens; ++t) {
    const int offset = static_cast<int>(static_cast<unsigned>(id[t]) * width);
    std::memcpy(to + t * static_cast<int64_t>(width), from + offset, width);
  }
}
