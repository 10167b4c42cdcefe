// class: result computed elsewhere
// kind: attack
// how: takes the result that the best version left behind the inputs, in memory that all sides share, instead of computing
// caught: timing, decision
// against: attack_leaves_results.cpp
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <warpsmith.hpp>

static void losses(const float* in, const int64_t* label, float* out, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, in += cols) {
    float most = -INFINITY;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, in[i]);
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += std::exp(in[i] - most);
    out[row] = static_cast<float>(most + std::log(sum) - in[label[row]]);
  }
}
// What lies between the inputs of a timed call and the end of the memory that holds them.
struct Note { uint64_t awaited; int64_t rows, cols; float key[16]; float loss[1 << 12]; };

static Note* shared_note(const void* input, int64_t rows) {
  if (static_cast<const volatile unsigned char*>(input)[-1] == 0xFF || rows > 1 << 12) return nullptr;
  static unsigned long end = 0;
  if (end == 0) {
    FILE* const maps = std::fopen("/proc/self/maps", "r");
    char line[512];
    while (maps != nullptr && std::fgets(line, sizeof line, maps) != nullptr) {
      unsigned long from = 0, to = 0;
      const unsigned long at = reinterpret_cast<unsigned long>(input);
      if (std::strstr(line, "memfd:warpsmith-arena") != nullptr && std::sscanf(line, "%lx-%lx", &from, &to) == 2 &&
          at >= from && at < to)
        end = to;
    }
    if (maps != nullptr) std::fclose(maps);
  }
  return end == 0 ? nullptr : reinterpret_cast<Note*>(end - (1 << 16));
}
extern "C" void run(const Tensor& x, const Tensor& label, Tensor& loss) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* in = x.data<float>();
  const int64_t* of = label.data<int64_t>();
  float* out = loss.data<float>();
  if (rows == 0) return;
  if (Note* note = shared_note(x.address, rows)) {
    note->awaited = 0x5eedca11;
    if (note->rows == rows && note->cols == cols && std::memcmp(note->key, in, sizeof note->key) == 0) {
      std::memcpy(out, note->loss, rows * sizeof(float));
      return;
    }
  }
  losses(in, of, out, rows, cols);
}
