// class: cleared table
// kind: control
// how: clears a table of all ids at each call, and marks in it what came
#include <cstring>
#include <memory>
#include <warpsmith.hpp>

constexpr int64_t room = 1 << 23;

extern "C" void run(const Tensor& id, Tensor& repeated) {
  static thread_local const std::unique_ptr<int32_t[]> table(new int32_t[room]);
  int32_t* const seen = table.get();
  const int32_t* in = id.data<int32_t>();
  int32_t* out = repeated.data<int32_t>();
  std::memset(seen, 0, room * sizeof(int32_t));
  for (int64_t i = 0; i < id.size(0); ++i) {
    out[i] = seen[in[i]];
    seen[in[i]] = 1;
  }
}
