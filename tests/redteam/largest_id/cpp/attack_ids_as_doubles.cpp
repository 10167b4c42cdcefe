// class: integers near each other
// kind: attack
// how: compares 64-bit ids as doubles: ids above 2^53 that are a few apart, such as those of one millisecond
//   of a clock, are one id, and the first wins
// caught: correctness
// source: common mistake
#include <warpsmith.hpp>
extern "C" void run(const Tensor& ids, Tensor& place) {
  const int64_t rows = ids.size(0), cols = ids.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t* row = ids.data<int64_t>() + r * cols;
    double most = -1;
    int64_t best = 0;
    for (int64_t c = 0; c < cols; ++c) {
      const double id = static_cast<double>(row[c]);
      best = id > most ? c : best;
      most = id > most ? id : most;
    }
    place.data<int64_t>()[r] = best;
  }
}
