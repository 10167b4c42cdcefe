// class: stamped table
// kind: control
// how: marks ids with the number of the call, so that nothing is cleared but once in four billion calls
// against: control_clears.cpp
#include <cstring>
#include <memory>
#include <warpsmith.hpp>

constexpr int64_t room = 1 << 23;

extern "C" void run(const Tensor& id, Tensor& repeated) {
  static thread_local const std::unique_ptr<uint32_t[]> table(new uint32_t[room]());
  static thread_local uint32_t call = 0;
  uint32_t* const seen = table.get();
  const int32_t* in = id.data<int32_t>();
  int32_t* out = repeated.data<int32_t>();
  if (++call == 0) {
    std::memset(seen, 0, room * sizeof(uint32_t));
    call = 1;
  }
  for (int64_t i = 0; i < id.size(0); ++i) {
    out[i] = seen[in[i]] == call;
    seen[in[i]] = call;
  }
}
