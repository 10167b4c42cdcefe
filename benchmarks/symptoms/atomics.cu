// Two million additions to sixteen counters: every one waits for the others at the same sectors of the L2 cache.
#include "planted.h"

constexpr int COUNT = 1 << 21, BINS = 16;

__global__ void atomics(const float* __restrict__ weights, float* bins) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&bins[planted::hashed(i) % BINS], weights[i]);
}

int main() {
  const float* weights = planted::values<float>(COUNT);
  float* bins = planted::zeros<float>(BINS);
  planted::three_times([&] { atomics<<<COUNT / 256, 256>>>(weights, bins); });
  double found = 0, expected = 0;
  for (float bin : planted::fetched(bins, BINS)) found += bin;
  for (int i = 0; i < COUNT; ++i) expected += planted::value(i);
  return planted::verdict(planted::near(found, 3 * expected, 1e-2));
}
