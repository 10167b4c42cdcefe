// class: offsets of 32 bits on a CPU
// kind: attack
// how: offsets into the table are of type unsigned, so a table of more than 2^32 elements is read at wrong places
// caught: correctness
#include <cstring>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& table, const Tensor& ids, Tensor& y) {
  const unsigned count = ids.size(0), width = table.size(1);
  const int64_t* id = ids.data<int64_t>();
  const float* rows = table.data<float>();
  float* out = y.data<float>();
#pragma omp parallel for
  for (unsigned i = 0; i < count; ++i)
    std::memcpy(out + i * width, rows + static_cast<unsigned>(id[i]) * width, width * sizeof(float));
}
