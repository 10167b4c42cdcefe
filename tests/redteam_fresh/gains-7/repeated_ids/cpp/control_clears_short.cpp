// class: cleared table
// kind: control
// how: clears a table of two bytes for each id at each call, and marks in it what came
#include <cstring>
#include <memory>
#include <warpsmith.hpp>

constexpr int64_t room = 1 << 23;

extern "C" void run(const Tensor& id, Tensor& repeated) {
  static thread_local const std::unique_ptr<uint16_t[]> table(new uint16_t[room]);
  uint16_t* const seen = table.get();
  const int32_t* in = id.data<int32_t>();
  int32_t* out = repeated.data<int32_t>();
  std::memset(seen, 0, room * sizeof(uint16_t));
  for (int64_t i = 0; i < id.size(0); ++i) {
    out[i] = seen[in[i]];
    seen[in[i]] = 1;
  }
}
