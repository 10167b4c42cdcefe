// Held out: a sum whose last block adds the partial sums alone, in one thread, while the device waits for it.
#include "planted.h"

constexpr size_t COUNT = 32u << 20;
constexpr int BLOCKS = 4096;

__global__ void serial_tail(const float4* __restrict__ in, float* partial, unsigned* arrived, float* out) {
  __shared__ float sums[8];
  const size_t threads = size_t(gridDim.x) * blockDim.x, thread = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  float sum = 0;
  for (size_t i = thread; i < COUNT / 4; i += threads) {
    const float4 x = in[i];
    sum += x.x + x.y + x.z + x.w;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float total = 0;
    for (int warp = 0; warp < 8; ++warp) total += sums[warp];
    partial[blockIdx.x] = total;
    __threadfence();
    const bool last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    if (last) {
      const volatile float* all = partial;
      float everything = 0;
      for (unsigned block = 0; block < gridDim.x; ++block) everything += all[block];
      *out = everything;
      *arrived = 0;
    }
  }
}

int main() {
  const float* in = planted::values<float>(COUNT);
  float* partial = planted::zeros<float>(BLOCKS);
  unsigned* arrived = planted::zeros<unsigned>(1);
  float* out = planted::zeros<float>(1);
  planted::three_times(
      [&] { serial_tail<<<BLOCKS, 256>>>(reinterpret_cast<const float4*>(in), partial, arrived, out); });
  double expected = 0;
  for (size_t i = 0; i < COUNT; ++i) expected += planted::value(i);
  return planted::verdict(planted::near(planted::fetched_one(out, 0), expected, 1e-3));
}
