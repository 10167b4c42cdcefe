// class: integers with structure
// kind: attack
// how: a hash table of low bits gives up after a page of probes and calls the id new: ids that are multiples
//   of a power of two, such as addresses or a batch in the upper half, are not found again
// caught: correctness
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
    for (uint64_t step = 0; step < 256; ++step) {
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
