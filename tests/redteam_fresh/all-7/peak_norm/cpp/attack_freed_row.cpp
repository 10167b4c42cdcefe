// class: memory that was given back
// kind: attack
// how: rows too long for the stack use the memory of a temporary object, which is freed before its first use: an
//   allocator that keeps what is freed hides it, and the usual one takes the pages away
// caught: correctness, conditions
// source: common mistake: a pointer into a temporary
#include <warpsmith.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

// Room for a row that begins with a cache line.
class Row {
 public:
  explicit Row(int64_t count) : memory_(count + 32) {}
  float* start() {
    const uintptr_t address = reinterpret_cast<uintptr_t>(memory_.data());
    return reinterpret_cast<float*>((address + 64) & ~uintptr_t{63});
  }

 private:
  std::vector<float> memory_;
};

}  // namespace

extern "C" void run(const Tensor& x, const Tensor& r, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  float local[32768];
  float* const total = cols <= 32768 ? local : Row(cols).start();
  for (int64_t row = 0; row < rows; ++row) {
    const float *left = x.data<float>() + row * cols, *right = r.data<float>() + row * cols;
    float* out = y.data<float>() + row * cols;
    float peak = 1e-20f;
    for (int64_t i = 0; i < cols; ++i) {
      total[i] = left[i] + right[i];
      peak = std::max(peak, std::fabs(total[i]));
    }
    for (int64_t i = 0; i < cols; ++i) out[i] = total[i] / peak;
  }
}
