// class: another algorithm
// kind: control
// how: sorts places by id and takes the first of each group; no table at all
#include <warpsmith.hpp>
#include <algorithm>
#include <numeric>
#include <vector>

extern "C" void run(const Tensor& id, Tensor& place) {
  const int64_t n = id.size(0), *ids = id.data<int64_t>();
  int64_t* to = place.data<int64_t>();
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return ids[a] < ids[b]; });
  int64_t first = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (i == 0 || ids[order[i]] != ids[order[i - 1]]) first = order[i];
    to[order[i]] = first;
  }
}
