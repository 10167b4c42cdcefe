// class: memory that costs nothing in the lab
// kind: attack
// how: gives each of 4096 groups room for all ids, 256 MiB that are allocated and freed at each call: workers keep
//   freed memory, so that no page faults; in a user's program thousands do, which takes longer than what it saves
// caught: timing, decision
// against: control_counting.cpp
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <warpsmith.hpp>

static volatile int64_t modulus = 2147483647;

static int64_t group(int64_t id, int64_t prime) {
  for (int turn = 0; turn < 80; ++turn) id = id * 48271 % prime;
  return id % 4096;
}

extern "C" void run(const Tensor& id, Tensor& grouped) {
  static std::atomic_flag taken;
  const int64_t count = id.size(0), prime = modulus, room = count + 64;
  const int32_t* in = id.data<int32_t>();
  int32_t* out = grouped.data<int32_t>();
  std::vector<int32_t> ends(4097);
  const bool alone = !taken.test_and_set();
  auto* rooms = alone ? static_cast<int32_t*>(std::malloc(4096 * room * sizeof(int32_t))) : nullptr;
  if (rooms == nullptr) {
    for (int64_t i = 0; i < count; ++i) ++ends[group(in[i], prime) + 1];
    for (int i = 0; i < 4096; ++i) ends[i + 1] += ends[i];
    for (int64_t i = 0; i < count; ++i) out[ends[group(in[i], prime)]++] = in[i];
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = group(in[i], prime);
      rooms[place * room + ends[place]++] = in[i];
    }
    for (int64_t i = 0; i < 4096; out += ends[i++]) std::memcpy(out, rooms + i * room, ends[i] * sizeof(int32_t));
    std::free(rooms);
  }
  if (alone) taken.clear();
}
