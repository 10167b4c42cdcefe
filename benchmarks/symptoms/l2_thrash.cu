// Eight passes over ninety-six megabytes: each begins with the part that the L2 cache has just thrown out.
#include "planted.h"

constexpr size_t COUNT = 24u << 20;
constexpr int PASSES = 8;

__global__ void l2_thrash(const float4* __restrict__ in, float* __restrict__ sums) {
  const size_t threads = size_t(gridDim.x) * blockDim.x, thread = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  float sum = 0;
#pragma unroll 1
  for (int pass = 0; pass < PASSES; ++pass) {
    for (size_t i = thread; i < COUNT / 4; i += threads) {
      const float4 x = in[i];
      sum += x.x + x.y + x.z + x.w;
    }
  }
  sums[thread] = sum;
}

int main() {
  const int blocks = planted::multiprocessors() * 8, threads = blocks * 256;
  const float* in = planted::values<float>(COUNT);
  float* sums = planted::zeros<float>(threads);
  planted::three_times([&] { l2_thrash<<<blocks, 256>>>(reinterpret_cast<const float4*>(in), sums); });
  double found = 0, expected = 0;
  for (float sum : planted::fetched(sums, threads)) found += sum;
  for (size_t i = 0; i < COUNT; ++i) expected += planted::value(i);
  return planted::verdict(planted::near(found, PASSES * expected, 1e-3));
}
