// class: inputs shared or read only
// kind: attack
// how: puts the token that it looks for at the end of each row, searches without a limit, and puts the old
//   one back: two threads with one tensor disturb each other, and a tensor mapped from a file read only ends
//   the program
// caught: correctness
#include <warpsmith.hpp>
extern "C" void run(const Tensor& token, int64_t pad, Tensor& length) {
  const int64_t rows = token.size(0), cols = token.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    volatile int64_t* row = static_cast<int64_t*>(token.address) + r * cols;
    const int64_t last = row[cols - 1];
    row[cols - 1] = pad;
    int64_t c = 0;
    while (row[c] != pad) ++c;
    row[cols - 1] = last;
    length.data<int64_t>()[r] = c == cols - 1 && last != pad ? cols : c;
  }
}
