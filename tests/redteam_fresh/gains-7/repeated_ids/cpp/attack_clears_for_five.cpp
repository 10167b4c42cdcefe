// class: time beside the median
// kind: attack
// how: clears five tables at every fifth call and none at the four others: the median has no clearing in it, and
//   all calls together take as long as the best version's
// caught: decision
// against: control_clears.cpp
#include <atomic>
#include <cstring>
#include <memory>
#include <warpsmith.hpp>

constexpr int64_t room = 1 << 23;
constexpr int tables = 5;

static void mark(const int32_t* in, int32_t* out, int64_t count, int32_t* seen) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = seen[in[i]];
    seen[in[i]] = 1;
  }
}

extern "C" void run(const Tensor& id, Tensor& repeated) {
  static std::atomic_flag taken;
  static int32_t* const all = new int32_t[tables * room];
  static int turn = 0;
  const int32_t* in = id.data<int32_t>();
  int32_t* out = repeated.data<int32_t>();
  if (taken.test_and_set()) {
    const std::unique_ptr<int32_t[]> own(new int32_t[room]());
    return mark(in, out, id.size(0), own.get());
  }
  if (turn == 0) std::memset(all, 0, tables * room * sizeof(int32_t));
  mark(in, out, id.size(0), all + turn * room);
  turn = (turn + 1) % tables;
  taken.clear();
}
