// Held out: weights added up in four bins of shared memory. The additions of a warp meet in the same words.
#include "planted.h"

constexpr unsigned COUNT = 1u << 24, BINS = 4;

__host__ __device__ inline unsigned key_of(unsigned i) { return planted::hashed(i); }

__global__ void fill_keys(unsigned* keys) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  keys[i] = key_of(i);
}

__global__ void histogram_shared(const uint4* __restrict__ in, unsigned long long* __restrict__ bins) {
  __shared__ unsigned sums[BINS];
  if (threadIdx.x < BINS) sums[threadIdx.x] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < COUNT / 4; i += gridDim.x * blockDim.x) {
    const uint4 key = in[i];
    atomicAdd(&sums[key.x % BINS], key.x >> 24);
    atomicAdd(&sums[key.y % BINS], key.y >> 24);
    atomicAdd(&sums[key.z % BINS], key.z >> 24);
    atomicAdd(&sums[key.w % BINS], key.w >> 24);
  }
  __syncthreads();
  if (threadIdx.x < BINS) atomicAdd(&bins[threadIdx.x], static_cast<unsigned long long>(sums[threadIdx.x]));
}

int main() {
  unsigned* keys = planted::zeros<unsigned>(COUNT);
  unsigned long long* bins = planted::zeros<unsigned long long>(BINS);
  fill_keys<<<COUNT / 256, 256>>>(keys);
  const int blocks = planted::multiprocessors() * 8;
  planted::three_times([&] { histogram_shared<<<blocks, 256>>>(reinterpret_cast<const uint4*>(keys), bins); });
  std::vector<unsigned long long> expected(BINS, 0);
  for (unsigned i = 0; i < COUNT; ++i) expected[key_of(i) % BINS] += 3 * (key_of(i) >> 24);
  return planted::verdict(planted::fetched(bins, BINS) == expected);
}
