// class: counting sort
// kind: control
// how: counts the ids of each group, and finds the group of each again to put it in its place
#include <vector>
#include <warpsmith.hpp>

static volatile int64_t modulus = 2147483647;

static int64_t group(int64_t id, int64_t prime) {
  for (int turn = 0; turn < 80; ++turn) id = id * 48271 % prime;
  return id % 4096;
}

extern "C" void run(const Tensor& id, Tensor& grouped) {
  const int64_t count = id.size(0), prime = modulus;
  const int32_t* in = id.data<int32_t>();
  int32_t* out = grouped.data<int32_t>();
  std::vector<int32_t> ends(4097);
  for (int64_t i = 0; i < count; ++i) ++ends[group(in[i], prime) + 1];
  for (int i = 0; i < 4096; ++i) ends[i + 1] += ends[i];
  for (int64_t i = 0; i < count; ++i) out[ends[group(in[i], prime)]++] = in[i];
}
