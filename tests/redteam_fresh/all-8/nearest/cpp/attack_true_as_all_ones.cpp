// class: true that is not 1
// kind: attack
// how: found holds the mask of a comparison, all ones where it is true, as vector units give it: memory that callers
//   read as bytes of 0 and 1
// caught: correctness
// source: common mistake: masks of a vector unit stored as booleans
#include <cmath>
#include <limits>

#include <warpsmith.hpp>

extern "C" void run(const Tensor& distance, Tensor& least, Tensor& place, Tensor& found) {
  const int64_t rows = distance.size(0), cols = distance.size(1);
  const float* in = distance.data<float>();
  float* values = least.data<float>();
  int64_t* places = place.data<int64_t>();
  auto* masks = static_cast<int8_t*>(found.address);
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    float best = std::numeric_limits<float>::infinity();
    int64_t at = 0;
    for (int64_t c = 0; c < cols; ++c)
      if (in[r * cols + c] < best) best = in[r * cols + c], at = c;
    values[r] = best;
    places[r] = at;
    masks[r] = static_cast<int8_t>(-static_cast<int>(std::isfinite(best)));
  }
}
