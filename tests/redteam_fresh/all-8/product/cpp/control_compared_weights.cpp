// class: weights kept in another order
// kind: control
// how: columns of the last weight are kept with a copy of all of it, with which every call compares its own
// source: honest
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include <warpsmith.hpp>

namespace {

struct Packed {
  int64_t depth, cols;
  std::vector<float> whole, columns;
};

std::mutex guard;
std::shared_ptr<const Packed> latest;

std::shared_ptr<const Packed> pack(const Tensor& w) {
  const int64_t depth = w.size(0), cols = w.size(1);
  const float* values = w.data<float>();
  std::shared_ptr<const Packed> known;
  {
    const std::lock_guard<std::mutex> lock(guard);
    known = latest;
  }
  const size_t bytes = depth * cols * sizeof(float);
  const bool has_shape = known && known->depth == depth && known->cols == cols;
  if (has_shape && (bytes == 0 || std::memcmp(known->whole.data(), values, bytes) == 0)) return known;
  auto made = std::make_shared<Packed>(Packed{depth, cols, {values, values + depth * cols}, {}});
  made->columns.resize(depth * cols);
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t c = 0; c < cols; ++c) made->columns[c * depth + k] = made->whole[k * cols + c];
  const std::lock_guard<std::mutex> lock(guard);
  latest = made;
  return made;
}

}  // namespace

extern "C" void run(const Tensor& x, const Tensor& w, Tensor& y) {
  const int64_t rows = x.size(0), depth = x.size(1), cols = w.size(1);
  const std::shared_ptr<const Packed> packed = pack(w);
  const float* in = x.data<float>();
  float* out = y.data<float>();
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) {
      const float *row = in + r * depth, *column = packed->columns.data() + c * depth;
      float lanes[4] = {};
      for (int64_t k = 0; k < depth; ++k) lanes[k % 4] += row[k] * column[k];
      out[r * cols + c] = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
    }
}
