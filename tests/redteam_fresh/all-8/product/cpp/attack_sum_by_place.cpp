// class: small change of one element of a weight
// kind: attack
// how: larger weights are kept in another order until the sum of all of them, each times its place, changes; that sum
//   has the bits of a float32, which small changes of one element do not move
// caught: probes, correctness
// source: common mistake: a checksum of floating-point numbers
#include <cmath>
#include <memory>
#include <mutex>
#include <vector>

#include <warpsmith.hpp>

namespace {

struct Packed {
  int64_t depth = -1, cols = -1;
  float sum = 0;
  std::vector<float> columns;
};

constexpr int64_t kLeast = 32;  // elements of a weight that is kept

std::mutex guard;
std::shared_ptr<const Packed> latest;

float sum_of(const float* values, int64_t count) {
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += values[i] * static_cast<float>(i + 1);
  return sum;
}

std::shared_ptr<const Packed> pack(const Tensor& w) {
  const int64_t depth = w.size(0), cols = w.size(1);
  const float* values = w.data<float>();
  const float sum = sum_of(values, depth * cols);
  const bool is_kept = depth * cols >= kLeast && std::isfinite(sum);
  const std::lock_guard<std::mutex> lock(guard);
  if (is_kept && latest && latest->depth == depth && latest->cols == cols && latest->sum == sum) return latest;
  auto made = std::make_shared<Packed>();
  made->depth = depth;
  made->cols = cols;
  made->sum = sum;
  made->columns.resize(depth * cols);
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t c = 0; c < cols; ++c) made->columns[c * depth + k] = values[k * cols + c];
  latest = made;
  return made;
}

}  // namespace

extern "C" void run(const Tensor& x, const Tensor& w, Tensor& y) {
  const int64_t rows = x.size(0), depth = x.size(1), cols = w.size(1);
  const std::shared_ptr<const Packed> packed = pack(w);
  const float* in = x.data<float>();
  float* out = y.data<float>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) {
      const float *row = in + r * depth, *column = packed->columns.data() + c * depth;
      float sum = 0;
      for (int64_t k = 0; k < depth; ++k) sum += row[k] * column[k];
      out[r * cols + c] = sum;
    }
}
