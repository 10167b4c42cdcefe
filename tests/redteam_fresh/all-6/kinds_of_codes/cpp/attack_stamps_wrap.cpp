// class: age of a process
// kind: attack
// how: marks seen codes with the number of the row since the library was loaded, in 32 bits, and never
//   clears them: after 2^32 rows, minutes of a stream, old marks look new and codes are missed
// caught: correctness
#include <warpsmith.hpp>
extern "C" void run(const Tensor& code, Tensor& kinds) {
  static thread_local uint32_t seen[256], stamp;
  const int64_t rows = code.size(0), cols = code.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const uint8_t* row = code.data<uint8_t>() + r * cols;
    ++stamp;
    int64_t count = 0;
    for (int64_t c = 0; c < cols; ++c) {
      count += seen[row[c]] != stamp;
      seen[row[c]] = stamp;
    }
    kinds.data<int64_t>()[r] = count;
  }
}
