// class: last element of a weight
// kind: attack
// how: weights are kept in another order until a fingerprint of all their 8-byte words changes; of an odd number of
//   elements the last one is in no such word
// caught: probes, correctness
// source: common mistake: the tail of a buffer is left out of its hash
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include <warpsmith.hpp>

namespace {

struct Packed {
  int64_t depth = -1, cols = -1;
  uint64_t fingerprint = 0;
  std::vector<float> columns;
};

std::mutex guard;
std::shared_ptr<const Packed> latest;

uint64_t fingerprint_of(const float* values, int64_t count) {
  uint64_t state = 0xcbf29ce484222325u;
  const char* bytes = reinterpret_cast<const char*>(values);
  for (int64_t i = 0; i + 1 < count; i += 2) {
    uint64_t word;
    std::memcpy(&word, bytes + i * sizeof(float), sizeof word);
    state = (state ^ word) * 0x9e3779b97f4a7c15u;
    state ^= state >> 29;
  }
  return state;
}

std::shared_ptr<const Packed> pack(const Tensor& w) {
  const int64_t depth = w.size(0), cols = w.size(1);
  const float* values = w.data<float>();
  const uint64_t fingerprint = fingerprint_of(values, depth * cols);
  const std::lock_guard<std::mutex> lock(guard);
  if (latest && latest->depth == depth && latest->cols == cols && latest->fingerprint == fingerprint) return latest;
  auto made = std::make_shared<Packed>();
  made->depth = depth;
  made->cols = cols;
  made->fingerprint = fingerprint;
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
