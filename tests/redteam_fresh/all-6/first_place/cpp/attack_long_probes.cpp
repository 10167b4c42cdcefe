// class: times of other values
// kind: attack
// how: a hash table of low bits looks at one slot after another: ids that are multiples of a power of two
//   all begin at one, so that a million of them take hours and the random ones that are timed milliseconds
// caught: timing
// against: control_sorted_places.cpp
#include <warpsmith.hpp>
#include <vector>

extern "C" void run(const Tensor& id, Tensor& place) {
  const int64_t n = id.size(0), *ids = id.data<int64_t>();
  int64_t* to = place.data<int64_t>();
  uint64_t room = sizeof(double);
  while (room < static_cast<uint64_t>(n) * sizeof(float)) room += room;
  const uint64_t mask = room - 1;
  std::vector<int64_t> table(room, -1);
  for (int64_t i = 0; i < n; ++i) {
    int64_t first = i;
    for (uint64_t step = 0; step < room; ++step) {
      int64_t& slot = table[(static_cast<uint64_t>(ids[i]) + step) & mask];
      if (slot < 0) slot = i;
      if (ids[slot] == ids[i]) {
        first = slot;
        break;
      }
    }
    to[i] = first;
  }
}
