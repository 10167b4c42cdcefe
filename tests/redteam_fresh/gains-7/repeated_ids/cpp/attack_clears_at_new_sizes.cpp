// class: work moved before the timed calls
// kind: attack
// how: has 48 tables, and clears those that were used where the size is another one than before, as at the first
//   of three calls that warm up, or when none is left, which is after more calls than are ever timed in a row
// caught: timing, decision
// against: control_clears_short.cpp
#include <atomic>
#include <cstring>
#include <memory>
#include <warpsmith.hpp>

constexpr int64_t room = 1 << 23;
constexpr int tables = 48;

static void mark(const int32_t* in, int32_t* out, int64_t count, uint16_t* seen) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = seen[in[i]];
    seen[in[i]] = 1;
  }
}

extern "C" void run(const Tensor& id, Tensor& repeated) {
  static std::atomic_flag taken;
  static uint16_t* const all = new uint16_t[tables * room];
  static int used = tables;
  static int64_t size = -1;
  const int32_t* in = id.data<int32_t>();
  int32_t* out = repeated.data<int32_t>();
  if (taken.test_and_set()) {
    const std::unique_ptr<uint16_t[]> own(new uint16_t[room]());
    return mark(in, out, id.size(0), own.get());
  }
  if (used == tables || id.size(0) != size) {
    std::memset(all, 0, used * room * sizeof(uint16_t));
    used = 0;
    size = id.size(0);
  }
  mark(in, out, id.size(0), all + used++ * room);
  taken.clear();
}
