// class: parallel within a row
// kind: control
// how: eight lanes keep their own least and place, in 32 bits where a row is short enough; ties go to the first place
// source: honest
#include <cmath>
#include <cstddef>
#include <limits>

#include <warpsmith.hpp>

namespace {

constexpr int kLanes = 8;

template <typename Place> void search(const float* row, int64_t cols, float& least, int64_t& place) {
  float best[kLanes];
  Place at[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    best[lane] = std::numeric_limits<float>::infinity();
    at[lane] = std::numeric_limits<Place>::max();
  }
  for (int64_t c = 0; c < cols; ++c) {
    const int lane = static_cast<int>(c % kLanes);
    if (row[c] < best[lane]) best[lane] = row[c], at[lane] = static_cast<Place>(c);
  }
  int first = 0;
  for (int lane = 1; lane < kLanes; ++lane)
    if (best[lane] < best[first] || (best[lane] == best[first] && at[lane] < at[first])) first = lane;
  least = best[first];
  place = at[first] == std::numeric_limits<Place>::max() ? 0 : at[first];
}

}  // namespace

extern "C" void run(const Tensor& distance, Tensor& least, Tensor& place, Tensor& found) {
  const int64_t rows = distance.size(0), cols = distance.size(1);
  const float* in = distance.data<float>();
  float* values = least.data<float>();
  int64_t* places = place.data<int64_t>();
  bool* is_found = found.data<bool>();
  const bool is_short = cols < std::numeric_limits<int32_t>::max();
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = in + r * cols;
    is_short ? search<int32_t>(row, cols, values[r], places[r]) : search<int64_t>(row, cols, values[r], places[r]);
    is_found[r] = std::isfinite(values[r]);
  }
}
