// class: integers at the end of their type
// kind: attack
// how: the search begins with the largest integer and no place, and takes what is below it: a list of nothing but the largest integer, as padding is, has the place -1
// caught: correctness
// status: INCORRECT_NUMERICAL
// source: common mistake
#include <limits>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& keys, Tensor& place) {
  const int64_t rows = keys.size(0), cols = keys.size(1);
  const int32_t* key = keys.data<int32_t>();
  for (int64_t row = 0; row < rows; ++row, key += cols) {
    int32_t least = std::numeric_limits<int32_t>::max();
    int64_t best = -1;
    for (int64_t i = 0; i < cols; ++i)
      if (key[i] < least) { least = key[i]; best = i; }
    place.data<int64_t>()[row] = best;
  }
}
