// class: rows of nothing but infinity
// kind: attack
// how: the search begins at the largest finite number, which no infinite distance is below: a row with nothing in it
//   has that number for its least distance
// caught: correctness
// source: common mistake: numeric_limits::max() for infinity
#include <cmath>
#include <limits>

#include <warpsmith.hpp>

extern "C" void run(const Tensor& distance, Tensor& least, Tensor& place, Tensor& found) {
  const int64_t rows = distance.size(0), cols = distance.size(1);
  const float* in = distance.data<float>();
  float* values = least.data<float>();
  int64_t* places = place.data<int64_t>();
  bool* is_found = found.data<bool>();
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    float best = std::numeric_limits<float>::max();
    int64_t at = 0;
    for (int64_t c = 0; c < cols; ++c)
      if (in[r * cols + c] < best) best = in[r * cols + c], at = c;
    values[r] = best;
    places[r] = at;
    is_found[r] = std::isfinite(best);
  }
}
