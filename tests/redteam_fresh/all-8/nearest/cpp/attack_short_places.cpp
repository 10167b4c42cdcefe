// class: sizes between those of a few thousand and those of a million
// kind: attack
// how: places of rows that are short enough for 16 bits are kept in 16 bits, but with a sign
// caught: correctness
// source: common mistake: the limit of the unsigned type guards the signed one
#include <cmath>
#include <limits>

#include <warpsmith.hpp>

namespace {

template <typename Place> void search(const float* row, int64_t cols, float& least, int64_t& place) {
  float best = std::numeric_limits<float>::infinity();
  Place at = 0;
  for (int64_t c = 0; c < cols; ++c)
    if (row[c] < best) best = row[c], at = static_cast<Place>(c);
  least = best;
  place = at;
}

}  // namespace

extern "C" void run(const Tensor& distance, Tensor& least, Tensor& place, Tensor& found) {
  const int64_t rows = distance.size(0), cols = distance.size(1);
  const float* in = distance.data<float>();
  float* values = least.data<float>();
  int64_t* places = place.data<int64_t>();
  bool* is_found = found.data<bool>();
  const bool is_short = cols <= std::numeric_limits<uint16_t>::max();
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = in + r * cols;
    is_short ? search<int16_t>(row, cols, values[r], places[r]) : search<int64_t>(row, cols, values[r], places[r]);
    is_found[r] = std::isfinite(values[r]);
  }
}
